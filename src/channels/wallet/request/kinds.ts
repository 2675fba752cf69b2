import { type ObjectOptions, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { enumOf, optional } from "../../../http/schemas.ts";
import { walletLimits } from "../limits.ts";
import { readColour, readDate } from "./apple-values.ts";
import {
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

/** What a member may be: how it is read, and what the API document says of it. */
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
  return kind(oneOf(of), enumOf(of));
}

export function list({ read, schema }: Kind, maxItems: number): Kind {
  return kind(listOf(read, maxItems), Type.Array(schema, { maxItems }));
}

export function record(kinds: Kinds, required: readonly string[] = [], options: ObjectOptions = {}): Kind {
  return kind(recordOf(readersOf(kinds), required), Type.Object(schemasOf(kinds, required), options));
}

/** All of them of one kind. */
export function all(names: readonly string[], of: Kind): Kinds {
  return Object.fromEntries(names.map((name) => [name, of]));
}

export function readersOf(kinds: Kinds): Readonly<Record<string, Reader>> {
  return Object.fromEntries(Object.entries(kinds).map(([name, { read }]) => [name, read]));
}

/** What is not required may be left out or null. */
export function schemasOf(kinds: Kinds, required: readonly string[]): TProperties {
  return Object.fromEntries(
    Object.entries(kinds).map(([name, { schema }]) => [name, required.includes(name) ? schema : optional(schema)]),
  );
}
