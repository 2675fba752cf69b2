import { type ObjectOptions, type StringOptions, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { NO_CONTROL_IN_LINES_PATTERN } from "../../../domain/texts/control-characters.ts";
import { isJsonObject } from "../../../domain/texts/json.ts";
import { enumSchema, NOT_BLANK, optional } from "../../../http/schemas.ts";
import { walletLimits } from "../limits.ts";
import { COLOUR, DATE_TIME, readColour, readDate } from "./apple-values.ts";
import {
  choiceReader,
  Fault,
  fault,
  integerBetween,
  listReader,
  numberBetween,
  type Reader,
  readAnyObject,
  readCode,
  readFilledText,
  readFlag,
  readText,
  readUrl,
  recordReader,
} from "./readers.ts";

/** The type of a member: its reader, and its schema in the API document. */
export interface Kind {
  readonly read: Reader;
  readonly schema: TSchema;
}
export type Kinds = Readonly<Record<string, Kind>>;

export function kind(read: Reader, schema: TSchema): Kind {
  return { read, schema };
}

const Text = Type.String({ maxLength: walletLimits.passTextCharsMax, pattern: NO_CONTROL_IN_LINES_PATTERN });

export const text = kind(readText, Text);
export const filled = kind(readFilledText, { ...Text, minLength: 1, ...NOT_BLANK });
/** The message of a barcode. */
export const code = kind(readCode, { ...filled.schema, pattern: "^[^\\u0000]*$" });
export const flag = kind(readFlag, Type.Boolean());
export const link = kind(readUrl, { ...Text, format: "uri" });
export const date = kind(
  readDate,
  Type.String({
    format: "date-time",
    pattern: DATE_TIME.source,
    description: "With time and zone, such as 2026-12-31T23:59:00+01:00.",
  }),
);
export const anyObject = kind(
  readAnyObject,
  Type.Record(Type.String(), Type.Unknown(), { description: "As Apple's pass.json has it." }),
);

export function colour(otherwise?: string): Kind {
  const description = "`rgb(11, 31, 58)` or `#0B1F3A`.";
  const pattern = COLOUR.source;
  return kind(
    readColour,
    Type.String({ pattern, description, ...(otherwise !== undefined && { default: otherwise }) }),
  );
}

/** The kind with a sentence in the document. */
export function said({ read, schema }: Kind, description: string): Kind {
  return kind(read, { ...schema, description });
}

/** A text of this form, which needs no flags. `says` completes the sentence that begins with the member. */
export function matching(form: RegExp, says: string, options: StringOptions = {}): Kind {
  const read: Reader = (value, field) => (typeof value === "string" && form.test(value) ? value : fault(field, says));
  return kind(read, Type.String({ pattern: form.source, ...options }));
}

export function integer(minimum: number, maximum: number): Kind {
  return kind(integerBetween(minimum, maximum), Type.Integer({ minimum, maximum }));
}

export function number(minimum: number, maximum: number): Kind {
  return kind(numberBetween(minimum, maximum), Type.Number({ minimum, maximum }));
}

export function one(of: readonly string[]): Kind {
  return kind(choiceReader(of), enumSchema(of));
}

export function list({ read, schema }: Kind, maxItems: number): Kind {
  return kind(listReader(read, maxItems), Type.Array(schema, { maxItems }));
}

export function record(kinds: Kinds, required: readonly string[] = [], options: ObjectOptions = {}): Kind {
  return kind(recordReader(toReaders(kinds), required), Type.Object(toSchemas(kinds, required), options));
}

export const OTHERS_TOO = { additionalProperties: true } as const;

interface OpenOptions extends ObjectOptions {
  /** Completes the refusal of a missing required member; null: its kind's refusal of null stands. */
  readonly missing?: string | null;
}

/** An object that is checked and not changed. It may have other members, which Google checks. */
export function open(kinds: Kinds, required: readonly string[] = [], options: OpenOptions = {}): Kind {
  const { missing = "is required", ...others } = options;
  const members = Object.entries(kinds).map(([name, one]) => [name, one.read, required.includes(name)] as const);
  const read: Reader = (value, field) => {
    if (!isJsonObject(value)) return fault(field, "must be an object");
    const lack = missing === null ? undefined : required.find((name) => (value[name] ?? null) === null);
    if (lack !== undefined) return fault(`${field}.${lack}`, missing ?? "");
    for (const [name, readMember, isRequired] of members) {
      const member = value[name] ?? null;
      const checked = member === null && !isRequired ? null : readMember(member, `${field}.${name}`);
      if (checked instanceof Fault) return checked;
    }
    return value;
  };
  return kind(read, Type.Object(toSchemas(kinds, required), { ...others, ...OTHERS_TOO }));
}

/** All of them of one kind. */
export function all(names: readonly string[], of: Kind): Kinds {
  return Object.fromEntries(names.map((name) => [name, of]));
}

export function toReaders(kinds: Kinds): Readonly<Record<string, Reader>> {
  return Object.fromEntries(Object.entries(kinds).map(([name, { read }]) => [name, read]));
}

/** Converts kinds to schemas; a member that is not required may be absent or null. */
export function toSchemas(kinds: Kinds, required: readonly string[]): TProperties {
  return Object.fromEntries(
    Object.entries(kinds).map(([name, { schema }]) => [name, required.includes(name) ? schema : optional(schema)]),
  );
}
