import { JOB_FIELD } from "../mime/kept-mail.ts";
import { MimePart } from "../reports/mime-part.ts";

/** Reads a few headers of a message that is stored as received. */

/** Returns the header block, one byte per character, up to `HEADER_BYTES_MAX`. */
function headerBlock(source: Buffer): string {
  const end = source.indexOf("\r\n\r\n");
  return source.toString("latin1", 0, Math.min(end === -1 ? source.length : end + 2, HEADER_BYTES_MAX));
}

const HEADER_BYTES_MAX = 64 * 1024;

/** Returns the id that names the job, in angle brackets, from a separate field if the Message-ID is not ours; or null. */
export function messageIdIn(source: Buffer): string | null {
  const block = headerBlock(source);
  return (JOB.exec(block) ?? MESSAGE_ID.exec(block))?.[1] ?? null;
}

const [JOB, MESSAGE_ID] = [idIn(JOB_FIELD), idIn("Message-ID")];

/** Finds the field's value, which stands in angle brackets. */
function idIn(field: string): RegExp {
  return new RegExp(String.raw`^${field}:(?:[ \t]|\r\n[ \t])*(<[^<>\r\n]{1,998}>)`, "im");
}

/** Reads the subject, unfolded, with RFC 2047 words decoded. Empty if there is none. */
export function subjectIn(source: Buffer): string {
  const raw = /^subject:((?:[^\r\n]|\r\n[ \t])*)/im.exec(headerBlock(source))?.[1] ?? "";
  // Folding adds only the line break (RFC 5322, 2.2.3); non-ASCII text is UTF-8 (RFC 6532).
  const line = Buffer.from(raw.replaceAll("\r\n", ""), "latin1").toString("utf8").trim();
  // White space between two encoded words belongs to neither (RFC 2047, 6.2).
  return line.replace(/(\?=)\s+(?==\?)/g, "$1").replace(/=\?([^?\s]+)\?([bq])\?([^?\s]*)\?=/gi, decodeWord);
}

/** Lists names and sizes of a message's files. */
export function attachmentsIn(source: Buffer): readonly { readonly filename: string; readonly bytes: number }[] {
  const files: { filename: string; bytes: number }[] = [];
  const visit = (part: MimePart, depth: number) => {
    const filename = parseFilename(part.field("content-disposition") ?? "");
    if (filename !== null) files.push({ filename, bytes: part.content().length });
    else if (depth < DEPTH_MAX) for (const inner of part.parts()) visit(inner, depth + 1);
  };
  visit(MimePart.parse(source.toString("latin1")), 0);
  return files;
}

/** Files beside a message whose alternatives have a part with files of its own. */
const DEPTH_MAX = 4;

/** Parses a plain or quoted name, or one in pieces (RFC 2231); null if there is none. */
function parseFilename(disposition: string): string | null {
  const plain = /;\s*filename=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(disposition);
  if (plain !== null)
    return Buffer.from((plain[1] ?? plain[2] ?? "").replace(/\\(.)/g, "$1"), "latin1").toString("utf8");
  const pieces = Array.from(
    disposition.matchAll(/;\s*filename\*(?:\d+\*?)?=("?)([^\s;"]*)\1/gi),
    ([, , piece = ""]) => piece,
  );
  if (pieces.length === 0) return null;
  const text = pieces.join("").replace(/^[\w-]*'[\w-]*'/, "");
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function decodeWord(word: string, charset: string, encoding: string, text: string): string {
  const bytes = encoding.toLowerCase() === "b" ? Buffer.from(text, "base64") : unquote(text);
  // RFC 2231 allows a language after the charset.
  const label = charset.split("*")[0] ?? "";
  try {
    // TextDecoder throws a RangeError for labels that it does not know.
    return new TextDecoder(label as Bun.Encoding).decode(bytes);
  } catch (error) {
    if (error instanceof RangeError) return word;
    throw error;
  }
}

function unquote(text: string): Buffer {
  const bytes = text
    .replaceAll("_", " ")
    .replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1");
}
