import { ApiError } from "./api-error.ts";

/** Per body: members, elements and containers together. */
const VALUES_MAX = 50_000;
const NESTING_MAX = 100;

/**
 * Parses the bytes as JSON. Throws an `ApiError` 400. `makeRoom` is told how many values there are before they are made, and may
 * throw, too.
 */
export function parseJson(
  bytes: Uint8Array,
  valuesMax: number = VALUES_MAX,
  makeRoom?: (values: number) => void,
): unknown {
  const cost = costOfParsing(bytes, valuesMax);
  if (cost === "nesting") throw new ApiError(400, `the body is nested deeper than ${NESTING_MAX} levels`);
  if (cost === "values") throw new ApiError(400, `the body holds more than ${valuesMax} values`);
  makeRoom?.(cost);
  try {
    return JSON.parse(UTF8.decode(bytes));
  } catch (error) {
    if (error instanceof TypeError) throw new ApiError(400, "the body is not valid UTF-8");
    if (error instanceof SyntaxError) throw new ApiError(400, "the body is not valid JSON");
    throw error;
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [BRACKET, BRACE, BRACKET_END, BRACE_END] = [0x5b, 0x7b, 0x5d, 0x7d];

/**
 * Counts the values of a text, or reports what makes it too costly to parse. It runs before the parser does: a megabyte of nested or empty
 * containers can be sent in milliseconds, but blocks the whole process for many times as long while it is parsed, validated and
 * serialized again. Values are counted by commas and opening brackets. The scan stops at the first bound exceeded; it does not
 * check whether the text is JSON.
 */
export function costOfParsing(bytes: Uint8Array, valuesMax: number): "nesting" | "values" | number {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) at = endOfString(bytes, at + 1);
    else if (byte === COMMA) {
      if (++values > valuesMax) return "values";
    } else if (byte === BRACKET || byte === BRACE) {
      if (++depth > NESTING_MAX) return "nesting";
      if (++values > valuesMax) return "values";
    } else if (byte === BRACKET_END || byte === BRACE_END) depth--;
  }
  return values;
}

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
