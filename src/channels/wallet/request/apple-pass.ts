import { type AppleContent, PASS_STYLES, type PassStyle } from "../../../domain/channels/wallet.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { walletLimits } from "../limits.ts";
import { FIELD_PLACES, namedFields, readFields } from "./apple-fields.ts";
import { IMAGE_FILES, type ImageFiles, readImages } from "./apple-images.ts";
import { namedLanguages, readStrings } from "./apple-languages.ts";
import { formProblem, PERSONALIZATION } from "./apple-personalization.ts";
import { readBarcode, TOP } from "./apple-top.ts";
import {
  type Checked,
  checkJson,
  checkMembers,
  checkSize,
  choiceReader,
  Fault,
  fault,
  MemberNames,
  type NullMeans,
  readFilledText,
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

export const TRANSIT_TYPES = ["Generic", "Air", "Boat", "Bus", "Train"].map((type) => `PKTransitType${type}`);
const GROUPED: readonly PassStyle[] = ["eventTicket", "boardingPass"];

/** Members of `pass_data` by canonical name. */
export const APPLE_MEMBERS: readonly string[] = [
  "serialNumber",
  "style",
  "transitType",
  "barcode",
  "localizations",
  "personalization",
  "extra",
  ...Object.keys(TOP),
  ...FIELD_PLACES,
  ...IMAGE_FILES.keys(),
];
const NAMES = new MemberNames(APPLE_MEMBERS);
const KNOWN: ReadonlySet<string> = new Set(APPLE_MEMBERS);
/** Members of pass.json that no request sets, because the service does. */
const SET_HERE: ReadonlySet<string> = new Set([
  ...PASS_STYLES,
  "formatVersion",
  "passTypeIdentifier",
  "teamIdentifier",
  "webServiceURL",
  "authenticationToken",
]);
/** Schemes that are for passes of one style. Others are Apple's to judge. */
const SCHEMES: ReadonlyMap<Json, PassStyle> = new Map([
  ["posterEventTicket", "eventTicket"],
  ["semanticBoardingPass", "boardingPass"],
]);

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
  const languages = namedLanguages(members.get("localizations") ?? null, nullMeans);
  if (languages instanceof Fault) return languages;
  if (members.has("localizations")) members.set("localizations", languages);
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
export function toAppleMembers(content: AppleContent, serial: string): AppleMembers {
  const { style, pass, strings, personalization = null } = content;
  const { [style]: inStyle, ...others } = pass;
  const [top, extra] = [true, false].map((isKnown) =>
    Object.fromEntries(Object.entries(others).filter(([name]) => KNOWN.has(name) === isKnown)),
  );
  return withoutFormerFaults(
    Object.entries({
      ...top,
      ...(isJsonObject(inStyle) ? inStyle : {}),
      style,
      serialNumber: serial,
      extra: extra ?? {},
      personalization,
      localizations: Object.fromEntries(
        Object.entries(strings ?? {}).map(([language, texts]) => [language, { strings: texts }]),
      ),
    }),
  );
}

/**
 * The members of a pass or template that is stored, without what a request may no longer say, so that an update about something
 * else is not refused for it: devices paid no attention to it.
 */
export function withoutFormerFaults(stored: Iterable<readonly [string, Json]>): Map<string, Json> {
  const members = new Map(stored);
  const style = members.get("style") ?? "generic";
  const schemes = members.get("preferredStyleSchemes");
  if (isJsonArray(schemes)) {
    const ofStyle = schemes.filter((scheme) => (SCHEMES.get(scheme) ?? style) === style);
    members.set("preferredStyleSchemes", ofStyle);
  }
  for (const place of FIELD_PLACES) {
    const fields = members.get(place);
    if (isJsonArray(fields)) members.set(place, fields.map(withOneNumberStyle));
  }
  return members;
}

function withOneNumberStyle(field: Json): Json {
  if (!isJsonObject(field) || (field["currencyCode"] ?? null) === null) return field;
  const { numberStyle: _, ...others } = field;
  return others;
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
  const style = choiceReader(PASS_STYLES)(given.get("style") ?? "generic", "pass_data.style");
  if (style instanceof Fault) return style;
  const pass = readPassJson(given, style);
  if (pass instanceof Fault) return pass;
  const strings = readStrings(members.get("localizations"));
  if (strings instanceof Fault) return strings;
  const form = readForm(given.get("personalization"));
  if (form instanceof Fault) return form;
  const tooLarge = checkSize({ ...pass, strings, ...form });
  if (tooLarge !== null) return tooLarge;
  const images = readImages(members, imagesBefore);
  if (images instanceof Fault) return images;
  const formless = "personalization" in form ? formProblem({ style, pass }, images.files) : null;
  if (formless !== null) return formless;
  const texts = Object.keys(strings).length === 0 ? {} : { strings };
  const content = { type: "apple", style, pass, ...texts, ...form, images: images.files } as const;
  return { serial, content, images: images.bytes };
}

function readPassJson(members: AppleMembers, style: PassStyle): Checked<JsonObject> {
  const given = new Map(members);
  for (const [name, colour] of Object.entries(DEFAULTS)) if (!given.has(name)) given.set(name, colour);
  const top = checkMembers(Object.entries(TOP), ({ read }, name) => {
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
  const misplaced = schemeProblem(top["preferredStyleSchemes"], style);
  if (misplaced !== null) return misplaced;
  const extra = readExtra(given.get("extra"));
  if (extra instanceof Fault) return extra;
  const fields = readFields(given, style);
  if (fields instanceof Fault) return fields;
  const transit = readTransitType(given, style);
  if (transit instanceof Fault) return transit;
  return { ...extra, ...top, [style]: { ...fields, ...transit } };
}

function readForm(value: Json | undefined): Checked<Pick<AppleContent, "personalization">> {
  if (value === undefined) return {};
  const personalization = PERSONALIZATION.read(value, "pass_data.personalization");
  if (personalization instanceof Fault) return personalization;
  return isJsonObject(personalization) ? { personalization } : {};
}

/**
 * Reads members that Apple has added to pass.json since this release: they are copied unchanged and never replace known
 * members.
 */
function readExtra(value: Json | undefined): Checked<JsonObject> {
  if (value === undefined) return {};
  const field = "pass_data.extra";
  if (!isJsonObject(value)) return fault(field, "must be an object");
  const size = JSON.stringify(value).length;
  if (size > walletLimits.passExtraCharsMax) {
    return fault(field, `must not be larger than ${walletLimits.passExtraCharsMax} characters`);
  }
  const known = Object.keys(value).find((name) => NAMES.knows(name) || SET_HERE.has(name));
  if (known !== undefined) {
    const why = SET_HERE.has(known) ? "is set by this service" : "is a member of pass_data itself";
    return fault(`${field}.${known}`, `${why}: extra is for what is not known here`);
  }
  return checkJson(value, field) ?? value;
}

function schemeProblem(schemes: Json | undefined, style: PassStyle): Fault | null {
  for (const [scheme, only] of SCHEMES) {
    if (style === only || !isJsonArray(schemes) || !schemes.includes(scheme)) continue;
    return fault("pass_data.preferred_style_schemes", `has ${String(scheme)}, which is for the style ${only} only`);
  }
  return null;
}

/** Many JSON writers send unset members as null or as an empty string. */
function isUnset(name: string, value: Json): boolean {
  return value === null || (value === "" && !IMAGE_FILES.has(name));
}

function readTransitType(given: AppleMembers, style: PassStyle): Checked<JsonObject> {
  const type = given.get("transitType");
  if (style === "boardingPass") {
    const transitType = choiceReader(TRANSIT_TYPES)(type ?? "PKTransitTypeGeneric", "pass_data.transit_type");
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
  // Such a path segment changes the address, so no device could fetch the pass.
  if (serial === "." || serial === "..") return fault(field, 'must not be "." or ".."');
  if (/[\t\r\n]/.test(serial)) return fault(field, "must not contain control characters");
  return serial;
}
