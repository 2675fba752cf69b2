import { isJsonArray, isJsonObject, type Json } from "../../../domain/json.ts";
import { walletLimits } from "../limits.ts";
import { readFieldList } from "./apple-fields.ts";
import { barcodeMisfit, readColour, readDate, readEncoding, readPublicKey } from "./apple-values.ts";
import {
  Fault,
  fault,
  integerBetween,
  listOf,
  numberBetween,
  oneOf,
  type Reader,
  readAnyObject,
  readCode,
  readFilledText,
  readFlag,
  readText,
  readUrl,
  recordOf,
} from "./readers.ts";

/**
 * What pass.json may have beside the fields of its style: Apple's Wallet Passes documentation and its Pass Builder, as of
 * 2026-11-28 (iOS 27). Words of which Apple adds new ones each year (schemes, types of actions, semantic tags) are open lists.
 */

export const BARCODE_FORMATS = ["QR", "PDF417", "Aztec", "Code128", "Code39", "Codabar", "EAN13", "I2of5"].map(
  (format) => `PKBarcodeFormat${format}`,
);

/** What an event's guide links to: of the pass, and of each entry of `upcomingPassInformation`. */
export const EVENT_LINKS = [
  "accessibilityURL",
  "addOnURL",
  "bagPolicyURL",
  "contactVenueWebsite",
  "directionsInformationURL",
  "merchandiseURL",
  "orderFoodURL",
  "parkingInformationURL",
  "purchaseParkingURL",
  "sellURL",
  "transferURL",
  "transitInformationURL",
] as const;

/** What a semantic boarding pass links to. */
export const TRANSIT_LINKS = [
  "changeSeatURL",
  "entertainmentURL",
  "managementURL",
  "purchaseAdditionalBaggageURL",
  "purchaseLoungeAccessURL",
  "purchaseWifiURL",
  "registerServiceAnimalURL",
  "reportLostBagURL",
  "requestWheelchairURL",
  "transitProviderWebsiteURL",
  "upgradeURL",
] as const;

export const EVENT_CONTACTS = ["contactVenueEmail", "contactVenuePhoneNumber"] as const;

/** Texts, each shown or used as it is. */
export const PLAIN_TEXTS = [
  "logoText",
  "eventLogoText",
  "logoSymbolName",
  "businessChatIdentifier",
  "transitProviderEmail",
  "transitProviderPhoneNumber",
  ...EVENT_CONTACTS,
] as const;

export const PLAIN_FLAGS = [
  "voided",
  "sharingProhibited",
  "suppressStripShine",
  "suppressHeaderDarkening",
  "useAutomaticColors",
] as const;

const readBarcodeMembers = recordOf(
  { message: readCode, format: oneOf(BARCODE_FORMATS), messageEncoding: readText, altText: readText },
  ["message", "format"],
);
export const readBarcode: Reader = (value, field) => {
  const barcode = readBarcodeMembers(value, field);
  if (barcode instanceof Fault) return barcode;
  const { message, messageEncoding, ...others } = isJsonObject(barcode) ? barcode : {};
  const text = String(message);
  const misfit = barcodeMisfit(String(others["format"]), text);
  if (misfit !== null) return fault(`${field}.message`, misfit);
  const encoding = readEncoding(messageEncoding, text, `${field}.messageEncoding`);
  return encoding instanceof Fault ? encoding : { message: text, messageEncoding: encoding, ...others };
};

const readStoreIds = listOf(integerBetween(0, Number.MAX_SAFE_INTEGER), 100);

const readAction: Reader = (value, field) => {
  const action = readActionMembers(value, field);
  if (action instanceof Fault || !isJsonObject(action)) return action;
  const targets = ["url", "placeIdentifier"].filter((name) => action[name] !== undefined);
  return targets.length === 1 ? action : fault(field, "must have either url or placeIdentifier");
};
const readActionMembers = recordOf(
  { identifier: readFilledText, type: readFilledText, url: readUrl, placeIdentifier: readFilledText },
  ["identifier", "type"],
);

const readImage = recordOf({
  URLs: listOf(
    recordOf(
      {
        URL: (value, field) => {
          const url = readUrl(value, field);
          return url instanceof Fault || /^https:/i.test(String(url)) ? url : fault(field, "must be a URL of https");
        },
        SHA256: (value, field) =>
          typeof value === "string" && /^[0-9a-f]{64}$/i.test(value) ? value : fault(field, "must be 64 digits in hex"),
        scale: integerBetween(1, 3),
        size: integerBetween(0, 2 * 1024 * 1024),
      },
      ["URL", "SHA256"],
    ),
    10,
  ),
  reuseExisting: readFlag,
});

const readOwnFields: Reader = (value, field) => readFieldList(value, field, new Set());

const readUpcoming = recordOf(
  {
    identifier: readFilledText,
    name: readFilledText,
    type: readFilledText,
    isActive: readFlag,
    dateInformation: recordOf({
      date: readDate,
      ignoreTimeComponents: readFlag,
      isAllDay: readFlag,
      isUnannounced: readFlag,
      isUndetermined: readFlag,
      timeZone: readFilledText,
    }),
    additionalInfoFields: readOwnFields,
    backFields: readOwnFields,
    auxiliaryStoreIdentifiers: readStoreIds,
    images: recordOf({ headerImage: readImage, venueMap: readImage }),
    semantics: readAnyObject,
    URLs: recordOf({ ...readersOf(EVENT_LINKS, readUrl), ...readersOf(EVENT_CONTACTS, readText) }),
  },
  ["identifier", "name", "type"],
);

/** Members copied into pass.json under their own name (Apple, Wallet Passes: Pass). */
export const TOP: Readonly<Record<string, Reader>> = {
  organizationName: readFilledText,
  description: readFilledText,
  backgroundColor: readColour,
  foregroundColor: readColour,
  labelColor: readColour,
  stripColor: readColour,
  footerBackgroundColor: readColour,
  barcodes: listOf(readBarcode, 10),
  relevantDate: readDate,
  relevantDates: listOf(
    recordOf({ date: readDate, relevantDate: readDate, startDate: readDate, endDate: readDate }),
    50,
  ),
  expirationDate: readDate,
  locations: listOf(
    recordOf(
      {
        latitude: numberBetween(-90, 90),
        longitude: numberBetween(-180, 180),
        altitude: numberBetween(-100_000, 100_000),
        relevantText: readText,
      },
      ["latitude", "longitude"],
    ),
    10,
  ),
  beacons: listOf(
    recordOf(
      {
        proximityUUID: readFilledText,
        major: integerBetween(0, 65_535),
        minor: integerBetween(0, 65_535),
        relevantText: readText,
      },
      ["proximityUUID"],
    ),
    10,
  ),
  maxDistance: numberBetween(0, 100_000_000),
  groupingIdentifier: readText,
  appLaunchURL: readUrl,
  associatedStoreIdentifiers: readStoreIds,
  auxiliaryStoreIdentifiers: readStoreIds,
  userInfo: readAnyObject,
  semantics: readAnyObject,
  nfc: recordOf({ message: readFilledText, encryptionPublicKey: readPublicKey, requiresAuthentication: readFlag }, [
    "message",
    "encryptionPublicKey",
  ]),
  preferredStyleSchemes: listOf(readFilledText, 20),
  featuredActions: identified(listOf(readAction, 2)),
  upcomingPassInformation: identified(listOf(readUpcoming, walletLimits.passUpcomingMax)),
  ...readersOf(PLAIN_TEXTS, readText),
  ...readersOf(PLAIN_FLAGS, readFlag),
  ...readersOf(EVENT_LINKS, readUrl),
  ...readersOf(TRANSIT_LINKS, readUrl),
};

function readersOf(names: readonly string[], read: Reader): Readonly<Record<string, Reader>> {
  return Object.fromEntries(names.map((name) => [name, read]));
}

/** A list whose items each have an `identifier` of their own. */
function identified(read: Reader): Reader {
  return (value, field) => {
    const list = read(value, field);
    if (list instanceof Fault || !isJsonArray(list)) return list;
    const seen = new Set<Json | undefined>();
    for (const [i, item] of list.entries()) {
      const identifier = isJsonObject(item) ? item["identifier"] : undefined;
      if (seen.has(identifier)) {
        return fault(`${field}[${i}].identifier`, "must be unique in its list, and is there twice");
      }
      seen.add(identifier);
    }
    return list;
  };
}
