const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [BRACKET, BRACE, BRACKET_END, BRACE_END] = [0x5b, 0x7b, 0x5d, 0x7d];

export const NESTING_MAX = 100;

/**
 * What makes a text too costly for the parser, or null. Looked for before the parser sees it: a megabyte of nested or of
 * empty containers is sent in milliseconds, and holds the whole process for many times as long when it is parsed, checked
 * and written again. Values are counted by their commas and opening brackets. Ends at the first bound that is passed;
 * whether the text is JSON at all is not its business.
 */
export function costOfParsing(bytes: Uint8Array, valuesMax: number): "nesting" | "values" | null {
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
  return null;
}

/** Most strings are short; a long one is nearly all of its body, and is searched by the machine. */
const SHORT_STRING_BYTES = 64;

/** Where the string's closing quote is, or the end of the text. `from`: behind its opening quote. */
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
