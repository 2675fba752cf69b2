import { Type } from "@sinclair/typebox";
import type { PassStyle } from "../../../domain/channels/wallet.ts";
import { isJsonObject, type Json, type JsonObject, toNumber } from "../../../domain/texts/json.ts";
import { enumSchema } from "../../../http/schemas.ts";
import { walletLimits } from "../limits.ts";
import { readDate } from "./apple-values.ts";
import { anyObject, filled, flag, type Kinds, kind, matching, one, said, text, toSchemas } from "./kinds.ts";
import {
  type Checked,
  checkEach,
  checkMembers,
  checkNumber,
  choiceReader,
  Fault,
  fault,
  MemberNames,
  type NullMeans,
  readFilledText,
  readText,
  snakeCase,
} from "./readers.ts";

/** The places of a pass that hold fields. */
export const FIELD_PLACES = [
  "headerFields",
  "primaryFields",
  "secondaryFields",
  "auxiliaryFields",
  "backFields",
  "additionalInfoFields",
  "footerFields",
] as const;

const DATE_STYLES = ["None", "Short", "Medium", "Long", "Full"].map((style) => `PKDateStyle${style}`);
const DETECTORS = ["PhoneNumber", "Link", "Address", "CalendarEvent"].map((type) => `PKDataDetectorType${type}`);
const TEXT_ALIGNMENTS = ["Left", "Center", "Right", "Natural"].map((side) => `PKTextAlignment${side}`);
const NUMBER_STYLES = ["Decimal", "Percent", "Scientific", "SpellOut"].map((style) => `PKNumberStyle${style}`);

const textOrNumber = kind(readValue, Type.Union([text.schema, Type.Number()]));

/** Members of a field beside its key and value (Apple, PassKit: PassFieldContent). */
const MEMBERS: Kinds = {
  label: text,
  changeMessage: said(text, "Shown when an update changes the value; `%@` stands for it."),
  textAlignment: one(TEXT_ALIGNMENTS),
  attributedValue: textOrNumber,
  dataDetectorTypes: kind(
    (value, field) => {
      if (!Array.isArray(value)) return fault(field, "must be a list");
      return checkEach([...new Set(value)], (type: Json) => choiceReader(DETECTORS)(type, field));
    },
    Type.Array(enumSchema(DETECTORS)),
  ),
  dateStyle: one(DATE_STYLES),
  timeStyle: one(DATE_STYLES),
  isRelative: flag,
  ignoresTimeZone: flag,
  numberStyle: one(NUMBER_STYLES),
  currencyCode: matching(/^[A-Z]{3}$/, "must be a code of ISO 4217, such as EUR", { description: "ISO 4217." }),
  row: kind(
    (value, field) => {
      const row = toNumber(value);
      if (row === 0 || row === 1) return row;
      return fault(field, "must be 0 or 1");
    },
    Type.Union([Type.Literal(0), Type.Literal(1)], { description: "Auxiliary, eventTicket only." }),
  ),
  semantics: anyObject,
};

const FIELD: Kinds = { key: said(filled, "Unique in the whole pass."), value: textOrNumber, ...MEMBERS };
const PassField = Type.Object(toSchemas(FIELD, ["key", "value"]), { $id: "PassField" });
export const PassFields = Type.Array(PassField, { maxItems: walletLimits.passFieldsMax });

const PassFieldPart = Type.Object(toSchemas(FIELD, ["key"]), {
  $id: "PassFieldPart",
  description: "Laid over the field of the same key. In an update, null as the value takes that field off.",
});
/** Fields laid over others. */
export const PassFieldParts = Type.Array(PassFieldPart, { maxItems: walletLimits.passFieldsMax });

const NAMES = new MemberNames(Object.keys(FIELD));

/** A list of fields with member names in Apple's spelling, otherwise unchecked. */
export function namedFields(value: Json, path: string, nullMeans: NullMeans): Checked<Json> {
  if (!Array.isArray(value)) return value;
  return checkEach(value, (item: Json, i) => {
    if (!isJsonObject(item)) return item;
    const members = NAMES.read(item, `${path}[${i}]`, nullMeans);
    return members instanceof Fault ? members : Object.fromEntries(members);
  });
}

/** The fields of a pass by place. A key that occurs twice anywhere in the pass is a fault. */
export function readFields(members: ReadonlyMap<string, Json>, style: PassStyle): Checked<JsonObject> {
  const keys = new Set<string>();
  const given = FIELD_PLACES.map((place) => [place, members.get(place) ?? []] as const);
  return checkMembers(given, (list, place) => {
    const path = `pass_data.${snakeCase(place)}`;
    const fields = readFieldList(list, path, keys);
    if (fields instanceof Fault) return fields;
    const rowed = fields.findIndex((field) => field["row"] !== undefined);
    if (rowed !== -1 && (style !== "eventTicket" || place !== "auxiliaryFields")) {
      return fault(`${path}[${rowed}].row`, "is for auxiliary fields of an eventTicket only");
    }
    return fields.length === 0 ? undefined : fields;
  });
}

/** A list of fields. `keys`: those of the fields before it, to which it adds its own. */
export function readFieldList(list: Json, path: string, keys: Set<string>): Checked<readonly JsonObject[]> {
  const value = namedFields(list, path, "absent");
  if (value instanceof Fault) return value;
  if (!Array.isArray(value)) return fault(path, "must be a list");
  if (value.length > walletLimits.passFieldsMax) {
    return fault(path, `must not have more than ${walletLimits.passFieldsMax} items`);
  }
  return checkEach(value, (item: Json, i) => readField(item, `${path}[${i}]`, keys));
}

function readField(item: Json, path: string, keys: Set<string>): Checked<JsonObject> {
  if (!isJsonObject(item)) return fault(path, "must be an object");
  const { key: givenKey, value: givenValue } = item;
  if (givenKey === undefined || givenKey === null || givenKey === "") return fault(`${path}.key`, "is required");
  const key = readFilledText(givenKey, `${path}.key`);
  if (key instanceof Fault) return key;
  if (keys.has(key)) return fault(`${path}.key`, "must be unique in the whole pass, and is there twice");
  keys.add(key);
  if (givenValue === undefined || givenValue === null) return fault(`${path}.value`, "is required");
  const value = readValue(givenValue, `${path}.value`);
  if (value instanceof Fault) return value;
  const others = checkMembers(Object.entries(item), (member, name) => {
    // Many JSON writers send unset members as null or as an empty string.
    return member === null || member === "" ? undefined : MEMBERS[name]?.read(member, `${path}.${name}`);
  });
  if (others instanceof Fault) return others;
  const field = { key, value, ...others };
  return valueMisfit(field, path) ?? field;
}

function readValue(value: Json, path: string): Checked<Json> {
  if (toNumber(value) !== null) return checkNumber(value, path) ?? value;
  if (typeof value === "string") return readText(value, path);
  return fault(path, "must be a string or a number");
}

/** A device refuses the whole pass if a value does not match the type of its style. */
function valueMisfit(field: JsonObject, path: string): Fault | null {
  const { value = null, dateStyle, timeStyle, numberStyle, currencyCode } = field;
  if (dateStyle !== undefined || timeStyle !== undefined) {
    const date = readDate(value, `${path}.value`);
    if (date instanceof Fault) return date;
  }
  if (numberStyle !== undefined && currencyCode !== undefined) {
    return fault(`${path}.numberStyle`, "cannot stand beside currencyCode: a field has one of them");
  }
  if ((numberStyle !== undefined || currencyCode !== undefined) && toNumber(value) === null) {
    return fault(`${path}.value`, "must be a number where numberStyle or currencyCode is given");
  }
  return null;
}
