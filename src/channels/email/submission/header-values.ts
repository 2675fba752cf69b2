import { type Address, addressParser, decodeWords } from "postal-mime";

/** A header as text on one line; its name is in lower case. */
interface Header {
  readonly key: string;
  readonly value: string;
}

/** An encoded word (RFC 2047, 2). */
const WORD = /=\?([^?\s]+)\?([QqBb])\?([^?]*)\?=/g;

/** Consecutive words in one encoding: a character may begin in one of them and end in the next. */
interface Run {
  readonly charset: string;
  readonly encoding: string;
  readonly texts: string[];
}

/**
 * Decodes a value like the library's `decodeWords`, but in time proportional to its length: the library processes a
 * whole run again for each word.
 */
export function decodeHeader(value: string): string {
  const decoded = decodeRuns(value, continuesRun);
  // The words should not have been joined.
  return decoded.includes("\ufffd") ? decodeRuns(value, () => false) : decoded;
}

function decodeRuns(value: string, joins: (run: Run, charset: string, encoding: string) => boolean): string {
  const pieces: string[] = [];
  let run: Run | null = null;
  let end = 0;
  for (const { 0: word, 1: charset = "", 2: encoding = "", 3: text = "", index } of value.matchAll(WORD)) {
    const between = value.slice(end, index);
    end = index + word.length;
    // White space between two words is no content.
    const follows = run !== null && /^[ \t\r\n]*$/.test(between);
    if (run !== null && follows && joins(run, charset, encoding)) {
      run.texts.push(text);
      continue;
    }
    if (run !== null) pieces.push(decodeRun(run));
    if (!follows) pieces.push(between);
    run = { charset, encoding, texts: [text] };
  }
  if (run !== null) pieces.push(decodeRun(run));
  return pieces.join("") + value.slice(end);
}

function continuesRun({ texts, ...run }: Run, charset: string, encoding: string): boolean {
  if (run.charset !== charset || run.encoding.toUpperCase() !== encoding.toUpperCase()) return false;
  const last = texts.at(-1) ?? "";
  // Base64 goes on only where a group of four has ended.
  return encoding.toUpperCase() !== "B" || (last.length % 4 === 0 && !last.endsWith("="));
}

function decodeRun({ charset, encoding, texts }: Run): string {
  return decodeWords(`=?${charset}?${encoding}?${texts.join("")}?=`);
}

/**
 * Total length of one kind of header. The address parser's time grows faster than the length, and a hundred addresses
 * with long names are far shorter.
 */
const ADDRESSES_CHARS_MAX = 32 * 1024;

/** Parses the addresses in all headers of the name; null if they are too long. */
export function addressesIn(headers: readonly Header[], name: string): readonly Address[] | null {
  const value = joined(headers, name);
  return value.length > ADDRESSES_CHARS_MAX ? null : addressParser(value);
}

/** As `addressesIn`, but drops the last addresses if they are too long. */
export function firstAddressesIn(headers: readonly Header[], name: string): readonly Address[] {
  const value = joined(headers, name);
  if (value.length <= ADDRESSES_CHARS_MAX) return addressParser(value);
  return addressParser(value.slice(0, value.lastIndexOf(",", ADDRESSES_CHARS_MAX) + 1));
}

function joined(headers: readonly Header[], name: string): string {
  const values = headers.filter(({ key }) => key === name).map(({ value }) => value);
  return values.join(", ");
}

/** Returns the first header of the name, or "". */
export function headerIn(headers: readonly Header[], name: string): string {
  return headers.find(({ key }) => key === name)?.value ?? "";
}
