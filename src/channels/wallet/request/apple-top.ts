import { isJsonArray, isJsonObject, type Json } from "../../../domain/texts/json.ts";
import { exactlyOne } from "../../../http/schemas.ts";
import { walletLimits } from "../limits.ts";
import { PassFields, readFieldList } from "./apple-fields.ts";
import { BASE64, barcodeMisfit, ENCODING, readEncoding, readPublicKey } from "./apple-values.ts";
import {
  all,
  anyObject,
  code,
  colour,
  date,
  filled,
  flag,
  integer,
  type Kind,
  type Kinds,
  kind,
  link,
  list,
  matching,
  number,
  one,
  record,
  said,
  text,
} from "./kinds.ts";
import { Fault, fault, type Reader, readText, readUrl } from "./readers.ts";

/**
 * Members of pass.json beside the fields of its style, from Apple's Wallet Passes documentation and its Pass Builder,
 * as of 2026-11-28 (iOS 27). Words of which Apple adds new ones each year (schemes, types of actions, semantic tags)
 * are open lists.
 */

export const BARCODE_FORMATS = ["QR", "PDF417", "Aztec", "Code128", "Code39", "Codabar", "EAN13", "I2of5"].map(
  (format) => `PKBarcodeFormat${format}`,
);

/** Links in an event's guide: those of the pass, and of each entry of `upcomingPassInformation`. */
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

/** Links of a semantic boarding pass. */
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

const barcodeMembers = record(
  {
    message: code,
    format: one(BARCODE_FORMATS),
    messageEncoding: said(
      kind(readText, { ...text.schema, pattern: ENCODING.source }),
      "By default iso-8859-1, or utf-8 where it takes that.",
    ),
    altText: text,
  },
  ["message", "format"],
  { $id: "PassBarcode" },
);
export const readBarcode: Reader = (value, field) => {
  const barcode = barcodeMembers.read(value, field);
  if (barcode instanceof Fault) return barcode;
  const { message, messageEncoding, ...others } = isJsonObject(barcode) ? barcode : {};
  const code = String(message);
  const misfit = barcodeMisfit(String(others["format"]), code);
  if (misfit !== null) return fault(`${field}.message`, misfit);
  const encoding = readEncoding(messageEncoding, code, `${field}.messageEncoding`);
  return encoding instanceof Fault ? encoding : { message: code, messageEncoding: encoding, ...others };
};

const storeIds = list(integer(0, Number.MAX_SAFE_INTEGER), 100);

const actionMembers = record(
  {
    identifier: filled,
    type: said(filled, "Such as `viewSchedule`, `call`, `shop` or `place`."),
    url: link,
    placeIdentifier: filled,
  },
  ["identifier", "type"],
  {
    $id: "PassFeaturedAction",
    description: "With either `url` or `placeIdentifier`.",
    ...exactlyOne("url", "placeIdentifier"),
  },
);
const action = kind((value, field) => {
  const members = actionMembers.read(value, field);
  if (members instanceof Fault || !isJsonObject(members)) return members;
  const targets = ["url", "placeIdentifier"].filter((name) => members[name] !== undefined);
  return targets.length === 1 ? members : fault(field, "must have either url or placeIdentifier");
}, actionMembers.schema);

const HTTPS = /^[hH][tT][tT][pP][sS]:/;
const secureLink = kind(
  (value, field) => {
    const url = readUrl(value, field);
    return url instanceof Fault || HTTPS.test(String(url)) ? url : fault(field, "must be a URL of https");
  },
  { ...link.schema, pattern: HTTPS.source },
);
const digest = matching(/^[0-9A-Fa-f]{64}$/, "must be 64 digits in hex");
const image = record(
  {
    URLs: list(
      record({ URL: secureLink, SHA256: digest, scale: integer(1, 3), size: integer(0, 2 * 1024 * 1024) }, [
        "URL",
        "SHA256",
      ]),
      10,
    ),
    reuseExisting: flag,
  },
  [],
  { $id: "PassUpcomingImage" },
);

const ownFields = kind((value, field) => readFieldList(value, field, new Set()), PassFields);

const upcoming = record(
  {
    identifier: filled,
    name: filled,
    type: said(filled, "`event`."),
    isActive: flag,
    dateInformation: record({
      date,
      ignoreTimeComponents: flag,
      isAllDay: flag,
      isUnannounced: flag,
      isUndetermined: flag,
      timeZone: filled,
    }),
    additionalInfoFields: ownFields,
    backFields: ownFields,
    auxiliaryStoreIdentifiers: storeIds,
    images: record({ headerImage: image, venueMap: image }),
    semantics: anyObject,
    URLs: record({ ...all(EVENT_LINKS, link), ...all(EVENT_CONTACTS, text) }),
  },
  ["identifier", "name", "type"],
  { $id: "PassUpcoming" },
);

/** Members copied into pass.json under their own name (Apple, Wallet Passes: Pass). */
export const TOP: Kinds = {
  organizationName: filled,
  description: filled,
  backgroundColor: colour("#0B1F3A"),
  foregroundColor: colour("#FFFFFF"),
  labelColor: colour("#FFFFFF"),
  stripColor: colour(),
  footerBackgroundColor: colour(),
  barcodes: list(kind(readBarcode, barcodeMembers.schema), 10),
  relevantDate: date,
  relevantDates: list(
    record({ date, relevantDate: date, startDate: date, endDate: date }, [], { $id: "PassDates" }),
    50,
  ),
  expirationDate: date,
  locations: list(
    record(
      {
        latitude: number(-90, 90),
        longitude: number(-180, 180),
        altitude: number(-100_000, 100_000),
        relevantText: text,
      },
      ["latitude", "longitude"],
      { $id: "PassLocation" },
    ),
    10,
  ),
  beacons: list(
    record(
      { proximityUUID: filled, major: integer(0, 65_535), minor: integer(0, 65_535), relevantText: text },
      ["proximityUUID"],
      { $id: "PassBeacon" },
    ),
    10,
  ),
  maxDistance: number(0, 100_000_000),
  groupingIdentifier: said(text, "eventTicket and boardingPass only."),
  ...all(PLAIN_FLAGS, flag),
  ...all(PLAIN_TEXTS, text),
  ...all([...EVENT_LINKS, ...TRANSIT_LINKS], link),
  appLaunchURL: said(link, "Needs `associated_store_identifiers` beside it."),
  associatedStoreIdentifiers: storeIds,
  auxiliaryStoreIdentifiers: storeIds,
  userInfo: anyObject,
  semantics: anyObject,
  nfc: record(
    {
      message: filled,
      encryptionPublicKey: kind(readPublicKey, {
        ...text.schema,
        pattern: BASE64.source,
        description: "Base64 of the SubjectPublicKeyInfo of an ECDH key on P-256.",
      }),
      requiresAuthentication: flag,
    },
    ["message", "encryptionPublicKey"],
    { description: "Only with a certificate that Apple issued for NFC." },
  ),
  preferredStyleSchemes: said(
    list(filled, 20),
    "Such as `posterEventTicket` for an eventTicket, or `semanticBoardingPass` for a boardingPass.",
  ),
  featuredActions: identified(list(action, 2)),
  upcomingPassInformation: identified(list(upcoming, walletLimits.passUpcomingMax)),
};

/** A list whose items each have an `identifier` of their own. */
function identified({ read, schema }: Kind): Kind {
  return kind((value, field) => {
    const items = read(value, field);
    if (items instanceof Fault || !isJsonArray(items)) return items;
    const seen = new Set<Json | undefined>();
    for (const [i, item] of items.entries()) {
      const identifier = isJsonObject(item) ? item["identifier"] : undefined;
      if (seen.has(identifier)) {
        return fault(`${field}[${i}].identifier`, "must be unique in its list, and is there twice");
      }
      seen.add(identifier);
    }
    return items;
  }, schema);
}
