import { quotedPrintable } from "./quoted-printable.ts";

export type TransferEncoding = "7bit" | "quoted-printable" | "base64";

/** A body ready for the wire: ASCII lines of at most 76 characters, ended by CRLF. */
export interface EncodedBody {
  readonly encoding: TransferEncoding;
  readonly body: string;
}

/** The longest line of a text that is sent unencoded. */
export const PLAIN_LINE_MAX = 76;
/** Longer texts are not searched for long lines. */
const PLAIN_CHARS_MAX = 128 * 1024;

/** Picks a text's encoding: none if possible, otherwise the one that keeps more of it readable. */
export function encodedText(text: string): EncodedBody {
  const lines = withCrlf(text);
  if (isPlain(lines)) return { encoding: "7bit", body: lines };
  return latinSurplus(lines) > 0
    ? { encoding: "quoted-printable", body: quotedPrintable(lines) }
    : { encoding: "base64", body: base64Lines(lines) };
}

/** Converts all line ends to CRLF, even a bare CR, which a server might take for a line end (RFC 5321, 2.3.8). */
export function withCrlf(text: string): string {
  return text.replace(/\r\n?|\n/g, "\r\n");
}

/** Whether a text needs no encoding: ASCII without control characters, in short lines. */
export function isPlain(text: string): boolean {
  return text.length <= PLAIN_CHARS_MAX && !NOT_PLAIN.test(text) && !LONG_LINE.test(text);
}

const NOT_PLAIN = /[\0-\x08\x0b\x0c\x0e-\x1f\x80-\uffff]/;
const LONG_LINE = new RegExp(`^.{${PLAIN_LINE_MAX + 1},}`, "m");

/** Counts the ASCII letters minus the characters that quoted-printable would expand. */
export function latinSurplus(text: string): number {
  let surplus = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= 0x80 || (code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d)) surplus -= 1;
    else if ((code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a)) surplus += 1;
  }
  return surplus;
}

export function base64Lines(text: string): string {
  const encoded = Buffer.from(text, "utf8").toString("base64");
  const lines: string[] = [];
  for (let at = 0; at < encoded.length; at += PLAIN_LINE_MAX) lines.push(encoded.slice(at, at + PLAIN_LINE_MAX));
  return lines.join("\r\n");
}
