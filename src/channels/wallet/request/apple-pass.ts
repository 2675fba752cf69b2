import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts";
import { type AppleContent, PASS_STYLES, type PassStyle } from "../../../domain/wallet.ts";
import { walletLimits } from "../limits.ts";
import { FIELD_PLACES, namedFields, readFields } from "./apple-fields.ts";
import { IMAGE_FILES, type ImageFiles, readImages } from "./apple-images.ts";
import { readColour, readDate, readEncoding } from "./apple-values.ts";
import {
  type Checked,
  checkMembers,
  checkSize,
  Fault,
  fault,
  integerBetween,
  listOf,
  MemberNames,
  type NullMeans,
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
  snakeCase,
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
  { message: readCode, format: oneOf(BARCODE_FORMATS), messageEncoding: readText, altText: readText },
  ["message", "format"],
);
const readBarcode: Reader = (value, field) => {
  const barcode = readBarcodeMembers(value, field);
  if (barcode instanceof Fault) return barcode;
  const { message, messageEncoding, ...others } = isJsonObject(barcode) ? barcode : {};
  const text = String(message);
  const encoding = readEncoding(messageEncoding, text, `${field}.messageEncoding`);
  return encoding instanceof Fault ? encoding : { message: text, messageEncoding: encoding, ...others };
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

/** The members of `pass_data`, in either spelling, under their canonical names. */
export function appleMembers(passData: JsonObject, nullMeans: NullMeans): Checked<Map<string, Json>> {
  const members = NAMES.read(passData, "pass_data", nullMeans);
  if (members instanceof Fault) return members;
  for (const place of FIELD_PLACES) {
    const value = members.get(place);
    if (value === undefined) continue;
    const fields = namedFields(value, `pass_data.${snakeCase(place)}`, nullMeans);
    if (fields instanceof Fault) return fields;
    members.set(place, fields);
  }
  return withOlderBarcode(members);
}

/** `barcode` is the older member, from when a pass could have only one. Files of passes often have both, for older devices. */
function withOlderBarcode(members: Map<string, Json>): Checked<Map<string, Json>> {
  const barcode = members.get("barcode");
  if (barcode === undefined) return members;
  const barcodes = members.get("barcodes") ?? null;
  if (barcode !== null && barcodes !== null) {
    const field = "pass_data.barcode";
    const read = readBarcode(barcode, field);
    if (read instanceof Fault) return read;
    // In either spelling, and with null for what is not there.
    const isOneOfThem = isJsonArray(barcodes) && barcodes.some((one) => Bun.deepEquals(readBarcode(one, field), read));
    if (!isOneOfThem) return fault(field, "is not one of barcodes: give one of the two members");
    members.delete("barcode");
    return members;
  }
  members.delete("barcode");
  return members.set("barcodes", barcode === null ? barcodes : [barcode]);
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
 * Builds a pass from its members. `imagesBefore`: images of the pass that the members change. Reading the result back
 * gives the same members.
 */
export function readApplePass(members: AppleMembers, imagesBefore: ImageFiles = {}): Checked<ReadApplePass> {
  const given = new Map([...members].filter(([name, value]) => !isUnset(name, value)));
  for (const name of ["serialNumber", "organizationName", "description"]) {
    if (!given.has(name)) return fault(`pass_data.${snakeCase(name)}`, "is required");
  }
  const serial = readSerial(given.get("serialNumber") ?? null, "pass_data.serial_number");
  if (serial instanceof Fault) return serial;
  const style = oneOf(PASS_STYLES)(given.get("style") ?? "generic", "pass_data.style");
  if (style instanceof Fault) return style;
  const pass = readPassJson(given, style);
  if (pass instanceof Fault) return pass;
  const images = readImages(members, imagesBefore);
  if (images instanceof Fault) return images;
  return { serial, content: { type: "apple", style, pass, images: images.files }, images: images.bytes };
}

function readPassJson(members: AppleMembers, style: PassStyle): Checked<JsonObject> {
  const given = new Map(members);
  for (const [name, colour] of Object.entries(DEFAULTS)) if (!given.has(name)) given.set(name, colour);
  const top = checkMembers(Object.entries(TOP), (read, name) => {
    const value = given.get(name);
    return value === undefined ? undefined : read(value, `pass_data.${snakeCase(name)}`);
  });
  if (top instanceof Fault) return top;
  if (given.has("groupingIdentifier") && !GROUPED.includes(style)) {
    return fault("pass_data.grouping_identifier", `is for the styles ${GROUPED.join(" and ")} only`);
  }
  if (given.has("appLaunchURL") && !given.has("associatedStoreIdentifiers")) {
    return fault("pass_data.app_launch_url", "needs associated_store_identifiers beside it");
  }
  const fields = readFields(given, style);
  if (fields instanceof Fault) return fields;
  const transit = readTransitType(given, style);
  if (transit instanceof Fault) return transit;
  const pass = { ...top, [style]: { ...fields, ...transit } };
  return checkSize(pass) ?? pass;
}

/** Many JSON writers send unset members as null or as an empty string. */
function isUnset(name: string, value: Json): boolean {
  return value === null || (value === "" && !IMAGE_FILES.has(name));
}

function readTransitType(given: AppleMembers, style: PassStyle): Checked<JsonObject> {
  const type = given.get("transitType");
  if (style === "boardingPass") {
    const transitType = oneOf(TRANSIT_TYPES)(type ?? "PKTransitTypeGeneric", "pass_data.transit_type");
    return transitType instanceof Fault ? transitType : { transitType };
  }
  if (type !== undefined) return fault("pass_data.transit_type", "is for the style boardingPass only");
  return {};
}

/** One line: it is part of the URLs that devices call. */
function readSerial(value: Json, field: string): Checked<string> {
  const serial = readFilledText(value, field);
  if (serial instanceof Fault) return serial;
  if (serial.length > walletLimits.passSerialCharsMax) {
    return fault(field, `must not be longer than ${walletLimits.passSerialCharsMax} characters`);
  }
  if (/[\t\r\n]/.test(serial)) return fault(field, "must not contain control characters");
  return serial;
}
