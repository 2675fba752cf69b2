import { isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts";
import { type AppleContent, PASS_STYLES, type PassStyle } from "../../../domain/wallet.ts";
import { walletLimits } from "../limits.ts";
import { FIELD_PLACES, namedFields, readFields } from "./apple-fields.ts";
import { IMAGE_FILES, type ImageFiles, readImages } from "./apple-images.ts";
import { readColour, readDate, readEncoding } from "./apple-values.ts";
import { fault } from "./fault.ts";
import { MemberNames, snakeCase } from "./member-names.ts";
import {
  checkSize,
  integerBetween,
  listOf,
  numberBetween,
  oneOf,
  type Reader,
  readAnyObject,
  readFilledText,
  readFlag,
  readText,
  readUrl,
  recordOf,
} from "./readers.ts";

/**
 * `pass_data` of an Apple pass by canonical name: Apple's spelling, flat, with field lists not yet placed in their
 * style.
 */
export type AppleMembers = ReadonlyMap<string, Json>;

export interface ReadApplePass {
  readonly serial: string;
  readonly content: AppleContent;
  /** Image bytes by SHA-256 in hex. */
  readonly images: ReadonlyMap<string, Uint8Array>;
}

export const BARCODE_FORMATS = ["QR", "PDF417", "Aztec", "Code128"].map((format) => `PKBarcodeFormat${format}`);
export const TRANSIT_TYPES = ["Generic", "Air", "Boat", "Bus", "Train"].map((type) => `PKTransitType${type}`);
const GROUPED: readonly PassStyle[] = ["eventTicket", "boardingPass"];

const readBarcodeMembers = recordOf(
  { message: readFilledText, format: oneOf(BARCODE_FORMATS), messageEncoding: readText, altText: readText },
  ["message", "format"],
);
const readBarcode: Reader = (value, field) => {
  const barcode = readBarcodeMembers(value, field);
  const { message, messageEncoding, ...others } = isJsonObject(barcode) ? barcode : {};
  const text = String(message);
  return { message: text, messageEncoding: readEncoding(messageEncoding, text, `${field}.messageEncoding`), ...others };
};

/** Members copied into pass.json unchanged (Apple, PassKit: Pass). */
const TOP: Readonly<Record<string, Reader>> = {
  organizationName: readFilledText,
  description: readFilledText,
  logoText: readText,
  backgroundColor: readColour,
  foregroundColor: readColour,
  labelColor: readColour,
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
  voided: readFlag,
  sharingProhibited: readFlag,
  suppressStripShine: readFlag,
  appLaunchURL: readUrl,
  associatedStoreIdentifiers: listOf(integerBetween(0, Number.MAX_SAFE_INTEGER), 100),
  userInfo: readAnyObject,
  semantics: readAnyObject,
  nfc: recordOf({ message: readFilledText, encryptionPublicKey: readText, requiresAuthentication: readFlag }, [
    "message",
  ]),
  preferredStyleSchemes: listOf(readFilledText, 20),
};

/** Members of `pass_data` by canonical name. */
export const APPLE_MEMBERS: readonly string[] = [
  "serialNumber",
  "style",
  "transitType",
  "barcode",
  ...Object.keys(TOP),
  ...FIELD_PLACES,
  ...IMAGE_FILES.keys(),
];
const NAMES = new MemberNames(APPLE_MEMBERS);

/** Defaults for a pass: the platform's design. */
const DEFAULTS: Readonly<Record<string, string>> = {
  backgroundColor: "#0B1F3A",
  foregroundColor: "#FFFFFF",
  labelColor: "#FFFFFF",
};

/** The members of `pass_data`, in either spelling, under their canonical names. Throws an `ApiError` 400. */
export function appleMembers(passData: JsonObject): Map<string, Json> {
  const members = NAMES.read(passData, "pass_data");
  for (const place of FIELD_PLACES) {
    const value = members.get(place);
    if (value !== undefined) members.set(place, namedFields(value, `pass_data.${snakeCase(place)}`));
  }
  // `barcode` is the older member, from when a pass could have only one.
  const barcode = members.get("barcode");
  members.delete("barcode");
  if (barcode !== undefined && barcode !== null && !members.has("barcodes")) members.set("barcodes", [barcode]);
  return members;
}

/** The members that would produce this content, without its images. */
export function appleMembersOf({ style, pass }: AppleContent, serial: string): AppleMembers {
  const inStyle = pass[style];
  const { [style]: _, ...top } = pass;
  return new Map<string, Json>(
    Object.entries({ ...top, ...(isJsonObject(inStyle) ? inStyle : {}), style, serialNumber: serial }),
  );
}

/**
 * Builds a pass from its members. `imagesBefore`: images of the pass that the members change. Throws an `ApiError` 400
 * that names the field. Reading the result back gives the same members.
 */
export function readApplePass(members: AppleMembers, imagesBefore: ImageFiles = {}): ReadApplePass {
  const given = new Map([...members].filter(([name, value]) => !isUnset(name, value)));
  for (const name of ["serialNumber", "organizationName", "description"]) {
    if (!given.has(name)) throw fault(`pass_data.${snakeCase(name)}`, "is required");
  }
  const serial = readSerial(given.get("serialNumber") ?? null, "pass_data.serial_number");
  const style = oneOf(PASS_STYLES)(given.get("style") ?? "generic", "pass_data.style");
  for (const [name, colour] of Object.entries(DEFAULTS)) if (!given.has(name)) given.set(name, colour);
  const top = Object.entries(TOP).flatMap(([name, read]) => {
    const value = given.get(name);
    return value === undefined ? [] : [[name, read(value, `pass_data.${snakeCase(name)}`)] as const];
  });
  if (given.has("groupingIdentifier") && !GROUPED.includes(style)) {
    throw fault("pass_data.grouping_identifier", `is for the styles ${GROUPED.join(" and ")} only`);
  }
  if (given.has("appLaunchURL") && !given.has("associatedStoreIdentifiers")) {
    throw fault("pass_data.app_launch_url", "needs associated_store_identifiers beside it");
  }
  const inStyle = { ...readFields(given, style), ...readTransitType(given, style) };
  const pass = { ...Object.fromEntries(top), [style]: inStyle };
  checkSize(pass);
  const images = readImages(members, imagesBefore);
  return { serial, content: { type: "apple", style, pass, images: images.files }, images: images.bytes };
}

/** Many JSON writers send unset members as null or as an empty string. */
function isUnset(name: string, value: Json): boolean {
  return value === null || (value === "" && !IMAGE_FILES.has(name));
}

function readTransitType(given: AppleMembers, style: PassStyle): JsonObject {
  const type = given.get("transitType");
  if (style === "boardingPass") {
    return { transitType: oneOf(TRANSIT_TYPES)(type ?? "PKTransitTypeGeneric", "pass_data.transit_type") };
  }
  if (type !== undefined) throw fault("pass_data.transit_type", "is for the style boardingPass only");
  return {};
}

/** One line: it is part of the URLs that devices call. */
export function readSerial(value: Json, field: string): string {
  const serial = readFilledText(value, field);
  if (serial.length > walletLimits.passSerialCharsMax) {
    throw fault(field, `must not be longer than ${walletLimits.passSerialCharsMax} characters`);
  }
  if (/[\t\r\n]/.test(serial)) throw fault(field, "must not contain control characters");
  return serial;
}
