/*
 * Quoted-printable (RFC 2045, 6.7) for text with CRLF line ends, in two steps that also work on pieces of a text:
 * escaping, then soft breaks. Lines break where nodemailer breaks them: after a nearby space or punctuation mark if
 * there is one, and never inside an escape or a character.
 */

/** Characters per line, including the soft break. */
const LINE_MAX = 76;
const CRLF_CHARS = 2;
/** How far back to look for a space or punctuation mark. */
const MARGIN = 25;

/** Encodes a whole text. */
export function quotedPrintable(text: string): string {
  const escaped = endsEscaped(escapedText(text));
  return escaped.length <= LINE_MAX ? escaped : softBroken(escaped);
}

/** Escapes all octets that need it, except white space at line ends, which cannot be recognised within a piece. */
export function escapedText(text: string): string {
  return text.replace(TO_ESCAPE, encodeHex);
}

/** Escapes white space at the end of each line and of the text. */
export function endsEscaped(escaped: string): string {
  return escaped.replace(BLANK_AT_END, (blank) => (blank === " " ? "=20" : "=09"));
}

/** Adds soft breaks to escaped text that starts at the beginning of a line. */
export function softBroken(escaped: string): string {
  let broken = "";
  let written = 0;
  let at = 0;
  let lineEnd = escaped.indexOf("\r\n");
  while (at < escaped.length) {
    // Searched for once each: a long line would be searched through for each of its soft breaks.
    if (lineEnd !== -1 && lineEnd < at) lineEnd = escaped.indexOf("\r\n", at);
    if (lineEnd !== -1 && lineEnd + CRLF_CHARS - at <= LINE_MAX) {
      at = lineEnd + CRLF_CHARS;
      continue;
    }
    at += breakAt(escaped, at);
    if (at === escaped.length) break;
    broken += `${escaped.slice(written, at)}=\r\n`;
    written = at;
  }
  return broken + escaped.slice(written);
}

/**
 * Splits an escaped text without line ends into soft-broken lines and the rest, which belongs to the last line whatever
 * follows.
 */
export function brokenHead(escaped: string): { readonly lines: string; readonly rest: string } {
  let lines = "";
  let at = 0;
  while (escaped.length - at > LINE_MAX) {
    const length = breakAt(escaped, at);
    lines += `${escaped.slice(at, at + length)}=\r\n`;
    at += length;
  }
  return { lines, rest: escaped.slice(at) };
}

const TO_ESCAPE = /[=\0-\x08\x0b\x0c\x0e-\x1f\x7f]|[^\0-\x7f]+/g;
const BLANK_AT_END = /[ \t](?=\r\n|$)/g;

const HEX = Array.from({ length: 256 }, (_, byte) => `=${byte.toString(16).toUpperCase().padStart(2, "0")}`);

function encodeHex(text: string): string {
  if (text.length === 1 && text < "\x80") return HEX[text.charCodeAt(0)] ?? "";
  let hex = "";
  for (const byte of Buffer.from(text, "utf8")) hex += HEX[byte] ?? "";
  return hex;
}

/** Returns how much of the escaped text at `from` fits on a line; less than the rest, unless all of the rest fits. */
function breakAt(escaped: string, from: number): number {
  const left = escaped.length - from;
  const window = Math.min(LINE_MAX, left);
  let length = window > LINE_MAX - MARGIN ? lengthToMark(escaped, from, window) : 0;
  if (length === 0) length = wholeCharacters(escaped, from, window);
  if (length === left || length < LINE_MAX) return length;
  // The soft break has to fit as well.
  return length - (isEscape(escaped, from + length) ? 3 : 1);
}

/** Returns the length up to and including the last space or punctuation mark near the window's end; 0 if there is none. */
function lengthToMark(escaped: string, from: number, window: number): number {
  for (let length = window; length > window - MARGIN; length -= 1) {
    if (isMark(escaped.charCodeAt(from + length - 1))) return length;
  }
  return 0;
}

function isMark(code: number): boolean {
  // Space, tab and `.,!?`.
  return code === 0x20 || code === 0x09 || code === 0x2e || code === 0x2c || code === 0x21 || code === 0x3f;
}

/** Shortens the window if it ends inside an escape or inside the escapes of one character. */
function wholeCharacters(escaped: string, from: number, window: number): number {
  let length = window;
  if (escaped.charCodeAt(from + length - 1) === EQUALS) length -= 1;
  else if (escaped.charCodeAt(from + length - 2) === EQUALS) length -= 2;
  if (length === window && !isEscape(escaped, from + length)) return length;
  const left = escaped.length - from;
  while (length > 3 && length < left && isEscape(escaped, from + length)) {
    const octet = Number.parseInt(escaped.slice(from + length - 2, from + length), 16);
    if (octet < 0x80) break;
    length -= 3;
    if (octet >= 0xc0) break;
  }
  return length > 0 ? length : window;
}

/** Whether an escape ends right before `end`. */
function isEscape(escaped: string, end: number): boolean {
  return escaped.charCodeAt(end - 3) === EQUALS;
}

const EQUALS = 0x3d;
