import { isJsonObject, type Json, type JsonObject } from "../../../domain/json.ts";
import type { PassStyle } from "../../../domain/wallet.ts";
import { walletLimits } from "../limits.ts";
import { readDate } from "./apple-values.ts";
import { fault } from "./fault.ts";
import { MemberNames, snakeCase } from "./member-names.ts";
import { oneOf, type Reader, readAnyObject, readFilledText, readFlag, readText } from "./readers.ts";

/** The places of a pass that hold fields. */
export const FIELD_PLACES = [
  "headerFields",
  "primaryFields",
  "secondaryFields",
  "auxiliaryFields",
  "backFields",
] as const;

export const DATE_STYLES = ["None", "Short", "Medium", "Long", "Full"].map((style) => `PKDateStyle${style}`);
export const DETECTORS = ["PhoneNumber", "Link", "Address", "CalendarEvent"].map((type) => `PKDataDetectorType${type}`);
export const TEXT_ALIGNMENTS = ["Left", "Center", "Right", "Natural"].map((side) => `PKTextAlignment${side}`);
export const NUMBER_STYLES = ["Decimal", "Percent", "Scientific", "SpellOut"].map((style) => `PKNumberStyle${style}`);

/** Members of a field beside its key and value (Apple, PassKit: PassFieldContent). */
const MEMBERS: Readonly<Record<string, Reader>> = {
  label: readText,
  changeMessage: readText,
  textAlignment: oneOf(TEXT_ALIGNMENTS),
  attributedValue: readValue,
  dataDetectorTypes: (value, field) => {
    if (!Array.isArray(value)) throw fault(field, "must be a list");
    return [...new Set(value)].map((type: Json) => oneOf(DETECTORS)(type, field));
  },
  dateStyle: oneOf(DATE_STYLES),
  timeStyle: oneOf(DATE_STYLES),
  isRelative: readFlag,
  ignoresTimeZone: readFlag,
  numberStyle: oneOf(NUMBER_STYLES),
  currencyCode: (value, field) => {
    if (typeof value === "string" && /^[A-Z]{3}$/.test(value)) return value;
    throw fault(field, "must be a code of ISO 4217, such as EUR");
  },
  row: (value, field) => {
    if (value === 0 || value === 1) return value;
    throw fault(field, "must be 0 or 1");
  },
  semantics: readAnyObject,
};
const NAMES = new MemberNames(["key", "value", ...Object.keys(MEMBERS)]);

/** A list of fields with member names in Apple's spelling, otherwise unchecked. */
export function namedFields(value: Json, path: string): Json {
  if (!Array.isArray(value)) return value;
  return value.map((item: Json, i) =>
    isJsonObject(item) ? Object.fromEntries(NAMES.read(item, `${path}[${i}]`)) : item,
  );
}

/** The fields of a pass by place. Throws an `ApiError` 400, also if a key occurs twice anywhere in the pass. */
export function readFields(members: ReadonlyMap<string, Json>, style: PassStyle): JsonObject {
  const keys = new Set<string>();
  const places = FIELD_PLACES.flatMap((place) => {
    const path = `pass_data.${snakeCase(place)}`;
    const value = namedFields(members.get(place) ?? [], path);
    if (!Array.isArray(value)) throw fault(path, "must be a list");
    if (value.length > walletLimits.passFieldsMax)
      throw fault(path, `must not have more than ${walletLimits.passFieldsMax} items`);
    const fields = value.map((item: Json, i) => readField(item, `${path}[${i}]`, keys));
    const rowed = fields.findIndex((field) => field["row"] !== undefined);
    if (rowed !== -1 && (style !== "eventTicket" || place !== "auxiliaryFields")) {
      throw fault(`${path}[${rowed}].row`, "is for auxiliary fields of an eventTicket only");
    }
    return fields.length === 0 ? [] : [[place, fields] as const];
  });
  return Object.fromEntries(places);
}

function readField(item: Json, path: string, keys: Set<string>): JsonObject {
  if (!isJsonObject(item)) throw fault(path, "must be an object");
  const { key: givenKey, value: givenValue } = item;
  if (givenKey === undefined || givenKey === null || givenKey === "") throw fault(`${path}.key`, "is required");
  const key = readFilledText(givenKey, `${path}.key`);
  if (keys.has(key)) throw fault(`${path}.key`, "must be unique in the whole pass, and is there twice");
  keys.add(key);
  if (givenValue === undefined || givenValue === null) throw fault(`${path}.value`, "is required");
  const value = readValue(givenValue, `${path}.value`);
  const others = Object.entries(item).flatMap(([name, member]) => {
    const read = MEMBERS[name];
    // Many JSON writers send unset members as null or as an empty string.
    if (read === undefined || member === null || member === "") return [];
    return [[name, read(member, `${path}.${name}`)] as const];
  });
  const field = { key, value, ...Object.fromEntries(others) };
  checkValueFits(field, path);
  return field;
}

function readValue(value: Json, path: string): Json {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value === "string") return readText(value, path);
  throw fault(path, "must be a string or a number");
}

/** A device refuses the whole pass if a value does not match the type of its style. */
function checkValueFits(field: JsonObject, path: string): void {
  const { value = null, dateStyle, timeStyle, numberStyle, currencyCode } = field;
  if (dateStyle !== undefined || timeStyle !== undefined) readDate(value, `${path}.value`);
  if ((numberStyle !== undefined || currencyCode !== undefined) && typeof value !== "number") {
    throw fault(`${path}.value`, "must be a number where numberStyle or currencyCode is given");
  }
}
