/** A value that survives a round trip through JSON. */
export type Json = null | boolean | number | string | ExactNumber | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/**
 * A number that a double would write with other digits (`1193287364518273124`, `10.50`), as it was sent.
 * `JSON.stringify` writes it digit by digit; `String` and `structuredClone` do not support it.
 */
export interface ExactNumber {
  readonly rawJSON: string;
}

/** ECMAScript's "JSON.parse source text access", which TypeScript does not declare yet. */
const WITH_SOURCE = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): ExactNumber;
  isRawJSON(value: unknown): value is ExactNumber;
};

export const isExactNumber = WITH_SOURCE.isRawJSON;

/**
 * As `JSON.parse`, with numbers digit by digit: an `ExactNumber` where a double has other digits. Takes ten times as long. Numbers
 * that take more than `charsMax` characters become doubles.
 */
export function parseExactly(text: string, charsMax = Number.POSITIVE_INFINITY): unknown {
  return WITH_SOURCE.parse(text, (_key, value, { source = "" }) =>
    typeof value === "number" && source !== String(value) && source.length <= charsMax
      ? WITH_SOURCE.rawJSON(source)
      : value,
  );
}

/** As `parseExactly`, hardly slower than `JSON.parse` where no number behind `from` can need it. */
export function parseWritten(text: string, from = 0, charsMax?: number): unknown {
  EXACT.lastIndex = from;
  return EXACT.test(text) ? parseExactly(text, charsMax) : JSON.parse(text);
}

/** The longest `ExactNumber` of a pass: more digits than any amount or id has. */
export const EXACT_CHARS_MAX = 100;

/**
 * Numbers of more than 15 digits, with an exponent, with a last 0 behind the point, as small as one with an exponent,
 * or -0.
 */
const EXACT = /[[:,]\s*-?(?:[\d.]{15}|[\d.]{1,14}[eE]|\d{1,13}\.\d{0,12}0[,\]}\s]|0\.000000|(?<=-)0[,\]}\s])/g;

/** Formats a string, number or boolean for display; numbers digit by digit. */
export function writtenOut(value: Json): string {
  return isExactNumber(value) ? value.rawJSON : String(value);
}

/** Returns the number as a double; null: it is not a number. */
export function toNumber(value: unknown): number | null {
  if (typeof value === "number") return value;
  return isExactNumber(value) ? Number(value.rawJSON) : null;
}

/** Parses the text as a JSON object; null if it is another value or not JSON. */
export function parseJsonObject(text: string, parse: (text: string) => unknown = JSON.parse): JsonObject | null {
  let parsed: unknown;
  try {
    parsed = parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  return isJsonObject(parsed) ? parsed : null;
}

/** As `Array.isArray`, which would turn a JSON value into a list of `any`. */
export function isJsonArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** Whether a parsed JSON value is an object (neither null nor an array, nor a number). */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isExactNumber(value);
}
