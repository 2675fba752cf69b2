import { decodeHeader } from "./header-values.ts";

/** A header field. */
export interface Field {
  readonly name: string;
  /** The name in lower case. */
  readonly key: string;
  /** The raw value: one byte per character, folded, without the last line end. */
  readonly raw: string;
  /** The same on one line, as text. */
  readonly value: string;
}

/** `type/subtype; name=value` (RFC 2045, 5.1). */
export interface Structured {
  /** In lower case. */
  readonly value: string;
  /** By their names in lower case, decoded (RFC 2231, RFC 2047). */
  readonly params: ReadonlyMap<string, string>;
  /** Whether the value consists only of these. */
  readonly isClean: boolean;
}

/** Parses the fields of a head, one byte per character. */
export function fieldsIn(head: string): readonly Field[] {
  const fields: Field[] = [];
  // A line that begins with white space goes on with the one before.
  for (const piece of head.split(/\n(?![ \t])/)) {
    const colon = piece.indexOf(":");
    if (colon < 1 || /^>?From /.test(piece)) continue;
    const name = piece.slice(0, colon).trimEnd();
    const raw = piece.slice(colon + 1).replace(/\r$/, "");
    fields.push({ name, key: name.toLowerCase(), raw, value: decodeText(raw).replace(/\r?\n/g, "").trim() });
  }
  return fields;
}

/**
 * Decodes non-ASCII bytes of a header without a declared character set: as UTF-8, or as the usual character set before
 * it.
 */
function decodeText(bytes: string): string {
  if (!/[\x80-\xff]/.test(bytes)) return bytes;
  const buffer = Buffer.from(bytes, "latin1");
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(buffer);
  } catch {
    return new TextDecoder("windows-1252").decode(buffer);
  }
}

const PARAM = /;\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))/g;
/** Longer than any honest program's value. */
const STRUCTURED_CHARS_MAX = 16 * 1024;

export function parseStructured(given: string): Structured {
  const text = given.slice(0, STRUCTURED_CHARS_MAX);
  const value = (/^[^;]*/.exec(text)?.[0] ?? "")
    .replace(/\([^()]*\)/g, "")
    .trim()
    .toLowerCase();
  const params = new Map<string, string>();
  /** In pieces, or with a character set: by name, then by number. */
  const pieces = new Map<string, string[]>();
  for (const [, key = "", quoted, plain = ""] of text.matchAll(PARAM)) {
    const name = key.toLowerCase();
    const content = quoted === undefined ? plain : quoted.replace(/\\(.)/g, "$1");
    const piece = /^([^*]+)\*(?:(\d{1,3})\*?)?$/.exec(name);
    if (piece === null) {
      if (!params.has(name)) params.set(name, decodeHeader(content));
      continue;
    }
    const list = pieces.get(piece[1] ?? "") ?? [];
    // A piece without an asterisk at its end is not escaped.
    list[Number(piece[2] ?? 0)] = name.endsWith("*") ? content : content.replaceAll("%", "%25");
    pieces.set(piece[1] ?? "", list);
  }
  for (const [name, list] of pieces) params.set(name, unescaped(list.join("")));
  const left = text
    .slice(/^[^;]*/.exec(text)?.[0].length)
    .replace(PARAM, "")
    .replace(/[;\s]/g, "");
  return { value, params, isClean: left === "" && given.length === text.length };
}

/** Decodes `charset'language'text` with escaped bytes (RFC 2231, 4). */
function unescaped(text: string): string {
  const [, charset = "utf-8", escaped = text] = /^([\w.:-]*)'[\w-]*'(.*)$/s.exec(text) ?? [];
  const bytes = escaped.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  try {
    return new TextDecoder((charset || "utf-8") as Bun.Encoding).decode(Buffer.from(bytes, "latin1"));
  } catch {
    return bytes;
  }
}
