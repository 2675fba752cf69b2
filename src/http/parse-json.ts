import { isExactNumber, isJsonArray, isJsonObject, type Json, parseExactly } from "../domain/texts/json.ts";
import { ApiError } from "./api-error.ts";

/** Per body: members, elements and containers together. */
const VALUES_MAX = 50_000;
const NESTING_MAX = 100;

/**
 * Parses the bytes as JSON. Throws an `ApiError` 400. `makeRoom` receives the number of values before they are created, and may
 * also throw. Numbers in members that are passed on (`PASSED_ON`) keep their digits.
 */
export function parseJson(
  bytes: Uint8Array,
  valuesMax: number = VALUES_MAX,
  makeRoom?: (values: number) => void,
): unknown {
  const parsed = parseWhole(bytes, valuesMax, makeRoom);
  return parsed.isExact ? rounded(parsed.value) : parsed.value;
}

/** As `parseJson`, for a value that is passed on as a whole. */
export function parsePassedOn(bytes: Uint8Array): unknown {
  return parseWhole(bytes, VALUES_MAX).value;
}

/**
 * Members whose values belong to the caller and reach a reader or a provider: placeholders' values, parameters, passes. Other
 * numbers are used in calculations.
 */
const PASSED_ON: ReadonlySet<string> = new Set([
  "data",
  "params",
  "value",
  "text",
  "pass_data",
  "class_data",
  "components",
  "parameters",
  "action",
]);

/** Converts numbers outside the passed-on members to plain ones. */
function rounded(value: Json): Json {
  if (isExactNumber(value)) return Number(value.rawJSON);
  if (isJsonArray(value)) return value.map(rounded);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, PASSED_ON.has(name) ? member : rounded(member)]),
  );
}

function parseWhole(
  bytes: Uint8Array,
  valuesMax: number,
  makeRoom?: (values: number) => void,
): { readonly value: Json; readonly isExact: boolean } {
  const cost = costOfParsing(bytes, valuesMax);
  if (cost === "nesting") throw new ApiError("invalid_json", `the body is nested deeper than ${NESTING_MAX} levels`);
  if (cost === "values") throw new ApiError("invalid_json", `the body holds more than ${valuesMax} values`);
  const { values, isExact } = cost;
  makeRoom?.(values);
  try {
    const text = UTF8.decode(bytes);
    // JSON's grammar has no other values.
    return { value: (isExact ? parseExactly(text) : JSON.parse(text)) as Json, isExact };
  } catch (error) {
    if (error instanceof TypeError) throw new ApiError("invalid_json", "the body is not valid UTF-8");
    if (error instanceof SyntaxError) throw new ApiError("invalid_json", "the body is not valid JSON");
    throw error;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [BRACKET, BRACE, BRACKET_END, BRACE_END] = [0x5b, 0x7b, 0x5d, 0x7d];
const [MINUS, DOT, ZERO, NINE] = [0x2d, 0x2e, 0x30, 0x39];

interface Cost {
  readonly values: number;
  /** Whether a double may write a number with other digits than it has here. */
  readonly isExact: boolean;
}

/**
 * Counts the values of a text, or reports why it is too costly to parse. It runs before the parser does: a megabyte of nested
 * or empty containers can be sent in milliseconds, but blocks the whole process for many times as long while it is parsed,
 * validated and serialized again. Values are counted by commas and opening brackets. The scan stops at the first bound
 * exceeded; it does not check whether the text is JSON.
 */
export function costOfParsing(bytes: Uint8Array, valuesMax: number): "nesting" | "values" | Cost {
  let depth = 0;
  let values = 0;
  let isExact = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) at = endOfString(bytes, at + 1);
    else if (byte === COMMA) {
      if (++values > valuesMax) return "values";
    } else if (byte === BRACKET || byte === BRACE) {
      if (++depth > NESTING_MAX) return "nesting";
      if (++values > valuesMax) return "values";
    } else if (byte === BRACKET_END || byte === BRACE_END) depth--;
    else if (byte !== undefined && (byte === MINUS || (byte >= ZERO && byte <= NINE))) {
      const end = endOfNumber(bytes, at);
      isExact ||= needsDigits(bytes, at, end);
      at = end - 1;
    }
  }
  return { values, isExact };
}

/** Returns the position past digits, points, signs and exponents. */
function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = from + 1;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte !== DOT && (byte < ZERO || byte > NINE) && !EXPONENT.has(byte)) return at;
  }
  return at;
}

const EXPONENT: ReadonlySet<number> = new Set(Buffer.from("eE+-"));

/** A double keeps 15 digits of any number, and is written without an exponent, -0, or zeros at its end. */
function needsDigits(bytes: Uint8Array, from: number, end: number): boolean {
  if (end - from > DOUBLE_DIGITS) return true;
  const first = bytes[from] === MINUS ? from + 1 : from;
  let point = -1;
  for (let at = first; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === DOT) point = at;
    else if (EXPONENT.has(byte)) return true;
  }
  if (point === -1) return first > from && bytes[first] === ZERO;
  // 0.0000001 would be 1e-7.
  return bytes[end - 1] === ZERO || (bytes[first] === ZERO && end - point > TINY_CHARS);
}

const DOUBLE_DIGITS = 15;
/** The point and six zeros. */
const TINY_CHARS = 7;

/** Most strings are short. A long one makes up nearly all of its body, so a native search pays off. */
const SHORT_STRING_BYTES = 64;

/** Index of the string's closing quote, or the end of the text. `from` is just past the opening quote. */
function endOfString(bytes: Uint8Array, from: number): number {
  const near = from + SHORT_STRING_BYTES;
  let at = from;
  for (; at < near && at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  const quote = bytes.indexOf(QUOTE, at);
  if (quote === -1) return bytes.length;
  if (quote === at || bytes[quote - 1] !== BACKSLASH) return quote;
  for (; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  return at;
}
