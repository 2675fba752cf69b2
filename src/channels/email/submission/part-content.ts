import { type Entity, IDENTITY } from "./mime-tree.ts";

/** A part's content after transfer decoding. */
export interface PartContent {
  readonly bytes: Buffer;
  /** Whether the encoding is valid. If not, mail programs may decode it differently. */
  readonly isSound: boolean;
}

export function decodeContent(
  { source, bodyStart, end, encoding }: Entity,
  bytesMax = Number.POSITIVE_INFINITY,
): PartContent {
  const body = source.subarray(bodyStart, Math.min(end, bodyStart + bytesMax));
  if (IDENTITY.has(encoding)) return { bytes: body, isSound: true };
  if (encoding === "quoted-printable") return unquoted(body);
  if (encoding !== "base64") return { bytes: body, isSound: false };
  const text = body.toString("latin1");
  try {
    const bytes = Uint8Array.fromBase64(text);
    return { bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), isSound: true };
  } catch {
    return { bytes: looseBase64(text), isSound: false };
  }
}

/** Skips other characters, as RFC 2045, 6.8 requires, and allows padding at each line's end, as some programs write it. */
function looseBase64(text: string): Buffer {
  const bytes = Buffer.alloc(Math.ceil((text.length * 3) / 4));
  let used = 0;
  let bits = 0;
  let bitCount = 0;
  for (let at = 0; at < text.length; at += 1) {
    const value = SIXBITS[text.charCodeAt(at)] ?? OTHER;
    if (value === PADDING) bitCount = 0;
    if (value >= PADDING) continue;
    bits = ((bits << 6) | value) & 0xffff;
    bitCount += 6;
    if (bitCount < 8) continue;
    bitCount -= 8;
    bytes[used] = (bits >> bitCount) & 0xff;
    used += 1;
  }
  return bytes.subarray(0, used);
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const [PADDING, OTHER] = [64, 65];
const SIXBITS = new Uint8Array(256).fill(OTHER);
for (let at = 0; at < ALPHABET.length; at += 1) SIXBITS[ALPHABET.charCodeAt(at)] = at;
SIXBITS["=".charCodeAt(0)] = PADDING;

const [EQUALS, NEWLINE, RETURN, SPACE, TAB] = [0x3d, 0x0a, 0x0d, 0x20, 0x09];

function unquoted(body: Buffer): PartContent {
  const bytes = Buffer.alloc(body.length);
  let isSound = true;
  let used = 0;
  for (let at = 0; at < body.length; ) {
    const code = body[at] ?? 0;
    const byte = code === EQUALS ? (nibble(body[at + 1]) << 4) | nibble(body[at + 2]) : code;
    const next = byte >= 0 ? at + (code === EQUALS ? 3 : 1) : softBreakEnd(body, at + 1);
    if (byte >= 0 || next === at + 1) bytes[used++] = byte >= 0 ? byte : EQUALS;
    isSound &&= byte >= 0 || next !== at + 1;
    at = next;
  }
  return { bytes: bytes.subarray(0, used), isSound };
}

/** Returns the value of a hexadecimal digit, or -1. */
function nibble(code: number | undefined): number {
  if (code === undefined) return -1;
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** Returns the start of the next line, or `at` if no line ends there. */
function softBreakEnd(body: Buffer, at: number): number {
  let end = at;
  while (end - at < BLANKS_MAX && (body[end] === SPACE || body[end] === TAB)) end += 1;
  if (body[end] === RETURN) end += 1;
  if (body[end] === NEWLINE || end === body.length) return Math.min(end + 1, body.length);
  return at;
}

/** Blanks that servers on the way may add at a line's end. */
const BLANKS_MAX = 64;

export interface PartText {
  readonly text: string;
  /** Whether the part's character set is known and the text is valid in it. */
  readonly isSound: boolean;
}

/** Decodes the text of a part. Without a character set, it is UTF-8 if valid. */
export function textIn(entity: Entity, bytesMax?: number): PartText {
  const { bytes, isSound } = decodeContent(entity, bytesMax);
  const charset = (entity.type.params.get("charset") ?? "").toLowerCase();
  const isNamed = charset !== "" && charset !== "us-ascii" && charset !== "ascii";
  try {
    const text = new TextDecoder((isNamed ? charset : "utf-8") as Bun.Encoding, {
      fatal: true,
      ignoreBOM: true,
    }).decode(bytes);
    // SMTP's line ends are not valid in UTF-16 (RFC 2046, 4.1.1).
    if (charset.startsWith("utf-16")) return { text, isSound: false };
    return { text, isSound: isSound && (isNamed || charset === "" || !/[^\0-\x7f]/.test(text)) };
  } catch {
    return { text: new TextDecoder("windows-1252").decode(bytes), isSound: isSound && charset === "" };
  }
}
