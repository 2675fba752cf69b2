import { decoded } from "../smtp/reply-reader.ts";

/**
 * One part of a message (RFC 2045): the header fields and body, as far as reports need them. The text holds one byte
 * per character. The input is untrusted: all work is linear, the number and size of parts are bounded, and input that
 * is not MIME becomes a part without fields.
 */
export class MimePart {
  private constructor(
    readonly head: string,
    private readonly fields: ReadonlyMap<string, string>,
    readonly body: string,
  ) {}

  static parse(text: string): MimePart {
    const { head, body } = splitHead(text);
    return new MimePart(head, parseFields(head), body);
  }

  /** Returns the first field of this name (in lower case), unfolded, or null. */
  field(name: string): string | null {
    return this.fields.get(name) ?? null;
  }

  /** `type/subtype` in lower case. */
  get mediaType(): string {
    return (/^[\w.+-]+\/[\w.+-]+/.exec(this.field("content-type") ?? "")?.[0] ?? "text/plain").toLowerCase();
  }

  /** Returns a parameter of the Content-Type, or null. */
  parameter(name: string): string | null {
    const found = new RegExp(`;\\s{0,80}${name}\\s{0,80}=\\s{0,80}(?:"([^"]{0,200})"|([^\\s;"]{1,200}))`, "i").exec(
      this.field("content-type") ?? "",
    );
    return found === null ? null : (found[1] ?? found[2] ?? null);
  }

  /** Decodes the body's transfer encoding. */
  content(): string {
    switch (this.field("content-transfer-encoding")?.trim().toLowerCase()) {
      case "base64":
        return Buffer.from(this.body, "base64").toString("latin1");
      case "quoted-printable":
        return this.body
          .replace(/=\r?\n/g, "")
          .replace(/=([0-9A-Fa-f]{2})/g, (_match, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
      default:
        return this.body;
    }
  }

  /** Decodes the content as text: in its charset if that is known, otherwise as UTF-8 if it is valid, or as Latin-1. */
  text(): string {
    const content = this.content();
    const charset = this.parameter("charset") ?? (content.includes(JAPANESE) ? "iso-2022-jp" : "utf-8");
    if (/^(?:us-ascii|utf-?8|iso-8859-1|)$/i.test(charset)) return decoded(content);
    try {
      // An unknown charset throws.
      return new TextDecoder(charset as Bun.Encoding).decode(Buffer.from(content, "latin1"));
    } catch {
      return decoded(content);
    }
  }

  /**
   * Returns the parts of a multipart, at most `PARTS_MAX`; empty for all other types. Does not descend into nested
   * parts.
   */
  parts(): readonly MimePart[] {
    const boundary = this.mediaType.startsWith("multipart/") ? this.parameter("boundary") : null;
    if (boundary === null || boundary.length === 0 || boundary.length > BOUNDARY_CHARS_MAX) return [];
    const delimiter = `\n--${boundary}`;
    // Puts a line break before a delimiter at the very start, as before all others.
    const text = `\n${this.body}`;
    const parts: MimePart[] = [];
    let at = text.indexOf(delimiter);
    while (at >= 0 && parts.length < PARTS_MAX && !text.startsWith("--", at + delimiter.length)) {
      const begin = text.indexOf("\n", at + delimiter.length) + 1;
      if (begin === 0) break;
      // The line break before a delimiter belongs to it (RFC 2046, 5.1.1).
      const end = text.indexOf(delimiter, begin - 1);
      parts.push(MimePart.parse(text.slice(begin, end < 0 ? text.length : Math.max(begin, end))));
      at = end;
    }
    return parts;
  }
}

/** Switches to JIS X 0208 (RFC 1468): reports in Japanese often name no charset. */
const JAPANESE = "\u001b$B";
const BOUNDARY_CHARS_MAX = 200;
const PARTS_MAX = 20;
const HEAD_CHARS_MAX = 256 * 1024;
const FIELDS_MAX = 1_000;

function splitHead(text: string): { readonly head: string; readonly body: string } {
  // A part without fields begins with the empty line.
  if (text.startsWith("\n")) return { head: "", body: text.slice(1) };
  if (text.startsWith("\r\n")) return { head: "", body: text.slice(2) };
  const end = /\r?\n\r?\n/.exec(text.slice(0, HEAD_CHARS_MAX));
  if (end === null) return { head: text.slice(0, HEAD_CHARS_MAX), body: "" };
  return { head: text.slice(0, end.index), body: text.slice(end.index + end[0].length) };
}

/**
 * Parses the fields of a header, or of a report, which has the same syntax: the first of each name, in lower case,
 * unfolded.
 */
export function parseFields(head: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  const lines = head.replace(/\r?\n[ \t]+/g, " ").split("\n", FIELDS_MAX);
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase();
    if (name !== "" && !fields.has(name)) fields.set(name, line.slice(colon + 1).trim());
  }
  return fields;
}
