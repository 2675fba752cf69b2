import { type ObjectOptions, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { enumSchema, optional } from "../../../http/schemas.ts";
import { walletLimits } from "../limits.ts";
import { readColour, readDate } from "./apple-values.ts";
import {
  choiceReader,
  integerBetween,
  listReader,
  numberBetween,
  type Reader,
  readAnyObject,
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

const Text = Type.String({ maxLength: walletLimits.passTextCharsMax });
const FilledText = Type.String({ minLength: 1, maxLength: walletLimits.passTextCharsMax });

export const text = kind(readText, Text);
export const filled = kind(readFilledText, FilledText);
export const flag = kind(readFlag, Type.Boolean());
export const link = kind(readUrl, Type.String({ format: "uri" }));
export const date = kind(
  readDate,
  Type.String({ format: "date-time", description: "With time and zone, such as 2026-12-31T23:59:00+01:00." }),
);
export const anyObject = kind(
  readAnyObject,
  Type.Record(Type.String(), Type.Unknown(), { description: "As Apple's pass.json has it." }),
);

export function colour(otherwise?: string): Kind {
  const description = "`rgb(11, 31, 58)` or `#0B1F3A`.";
  return kind(readColour, Type.String({ description, ...(otherwise !== undefined && { default: otherwise }) }));
}

/** The kind with a sentence in the document. */
export function said({ read, schema }: Kind, description: string): Kind {
  return kind(read, { ...schema, description });
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
