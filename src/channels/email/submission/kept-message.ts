import { isAscii } from "node:buffer";
import { encodeWord, foldLines } from "nodemailer/lib/mime-funcs";
import MimeNode from "nodemailer/lib/mime-node";
import { addressParser } from "postal-mime";
import { isSteeringHeader } from "../further-members.ts";
import { subjectValue, toMailbox } from "../mime/header-values.ts";
import { base64Rows } from "../mime/message-rest.ts";
import type { Field } from "./header-fields.ts";
import { decodeHeader } from "./header-values.ts";
import { submissionLimits } from "./limits.ts";
import { type Entity, IDENTITY, mimeTree, tooMany } from "./mime-tree.ts";
import { decodeContent } from "./part-content.ts";
import { SmtpRefusal } from "./smtp-refusal.ts";

/** A message in its final form, except for the fields that its delivery adds. */
export interface KeptMessage {
  /** Head, empty line and body, in lines that end with CRLF and have at most 998 bytes. The head is ASCII. */
  readonly bytes: Buffer;
  /** Whether the body has bytes beyond ASCII, because signed parts are sent unchanged. */
  readonly isEightBit: boolean;
}

/**
 * Copies the message byte for byte, with these exceptions:
 *
 * K1. These fields are dropped from its head: traces of its way here, hidden recipients, fields that a delivery writes
 *     itself, and commands to mail servers.
 * K2. Bytes beyond ASCII in a head become encoded words (RFC 2047), and long lines are folded.
 * K3. A part that a mail server might refuse or change on the way (bytes beyond ASCII, long lines, stray line ends) is
 *     encoded in base64 (RFC 2045, 6.2), with the same content. Signed parts are never changed (RFC 1847, 2.1).
 *
 * Large parts are written in steps, between which other work runs. Rejects with an `SmtpRefusal` if a signed part
 * cannot be sent unchanged.
 */
export async function keptMessage(root: Entity): Promise<KeptMessage> {
  const writer = new Writer();
  await writer.message({ ...root, fields: sentOn(root.fields) });
  return { bytes: Buffer.concat(writer.pieces), isEightBit: writer.isEightBit };
}

/** Fields that each delivery writes itself, and hidden recipients. */
const OWN: ReadonlySet<string> = new Set([
  "from",
  "sender",
  "list-unsubscribe",
  "list-unsubscribe-post",
  "bcc",
  "resent-bcc",
  "content-length",
  "status",
]);
/** Fields that earlier servers added for their own use (RFC 5321, 4.4; RFC 8601; RFC 8617). */
const TRACE =
  /^(?:return-path|(?:x-)?received(?:-spf)?|(?:x-)?delivered-to|x-original-to|envelope-to|(?:x-)?authentication-results.*|arc-.*|x-(?:ms-exchange|forefront|microsoft-antispam|eop|google|gm)-?.*)$/;
/** Fields that may occur once (RFC 5322, 3.6; RFC 2045, 3): mail programs differ in which of several they use. */
const SINGLE: ReadonlySet<string> = new Set([
  "date",
  "reply-to",
  "to",
  "cc",
  "message-id",
  "in-reply-to",
  "references",
  "subject",
  "mime-version",
  "content-type",
  "content-transfer-encoding",
  "content-disposition",
  "content-id",
]);
const MANY: ReadonlySet<string> = new Set(["to", "cc"]);

export function isTraceHeader(key: string): boolean {
  return TRACE.test(key);
}

function sentOn(fields: readonly Field[]): readonly Field[] {
  const kept = new Map<string, Field>();
  for (const [at, field] of fields.entries()) {
    const { key } = field;
    if (OWN.has(key) || isTraceHeader(key) || key.startsWith("x-waybill-") || isSteeringHeader(key)) continue;
    const place = SINGLE.has(key) ? key : `${key} ${at}`;
    const first = kept.get(place);
    if (first === undefined) kept.set(place, field);
    else if (MANY.has(key))
      kept.set(place, { ...first, raw: `${first.raw},\r\n${field.raw}`, value: `${first.value}, ${field.value}` });
  }
  return [...kept.values()];
}

/** Without its line end (RFC 5322, 2.1.1). */
const LINE_BYTES_MAX = 998;

class Writer {
  readonly pieces: Buffer[] = [];
  isEightBit = false;

  async message(root: Entity): Promise<void> {
    await this.entity(root);
    if (!this.pieces.at(-1)?.subarray(-2).equals(CRLF)) this.pieces.push(CRLF);
  }

  private async entity(entity: Entity): Promise<void> {
    const { source, bodyStart, end, type, encoding, children } = entity;
    const body = source.subarray(bodyStart, end);
    if (body.length > TURN_BYTES) await nextTurn();
    if (type.value === "multipart/signed" || isOpenMessage(entity)) {
      const isWritten = !hasWrapped(entity) && this.unchanged(entity, body);
      if (isWritten) return;
      if (type.value === "multipart/signed") throw unsendable("signed");
    }
    if (findFlaws(body) === null && !hasWrapped(entity)) return this.write(head(entity), body);
    if (children.length > 0) return this.inside(entity);
    if (hasWrapped(entity)) {
      // Its body is a message, which must not be encoded (RFC 2046, 5.2.1).
      this.write(head(entity, ""));
      return this.entity(mimeTree(decodeContent(entity).bytes));
    }
    const isText = type.value.startsWith("text/") && IDENTITY.has(encoding);
    const lines = isText || !isKnown(encoding) ? withCrlf(body) : body;
    if (lines !== body && findFlaws(lines) === null) return this.write(head(entity), lines);
    if (!isKnown(encoding)) throw unsendable("encoded in a way that is not known here");
    const content = isText ? lines : decodeContent(entity).bytes;
    this.write(head(entity, "base64"));
    for (let at = 0; at < content.length; at += TURN_BYTES) {
      this.pieces.push(Buffer.from(base64Rows(content.subarray(at, at + TURN_BYTES)), "latin1"));
      await nextTurn();
    }
  }

  private async inside(entity: Entity): Promise<void> {
    this.write(head(entity, ""));
    const boundary = entity.type.params.get("boundary") ?? "";
    const isMultipart = entity.type.value.startsWith("multipart/");
    for (const child of entity.children) {
      if (isMultipart) this.pieces.push(Buffer.from(`--${boundary}\r\n`, "latin1"));
      await this.entity(child);
      if (isMultipart) this.pieces.push(CRLF);
    }
    if (isMultipart) this.pieces.push(Buffer.from(`--${boundary}--`, "latin1"));
  }

  /**
   * Writes a signed part, or a person's mail, unchanged, even in bytes beyond ASCII. Returns whether it can be sent in
   * this form.
   */
  private unchanged(entity: Entity, body: Buffer): boolean {
    const flaws = findFlaws(body);
    // A signature always covers lines that end with CRLF.
    const lines = flaws?.hasStrayEnds === true ? withCrlf(body) : body;
    const left = lines === body ? flaws : findFlaws(lines);
    if (left !== null && (left.hasLongLines || left.hasNul)) return false;
    this.isEightBit ||= left?.isEightBit === true;
    this.write(head(entity), lines);
    return true;
  }

  private write(head: string, body: Buffer = EMPTY): void {
    this.pieces.push(Buffer.from(`${head}\r\n`, "latin1"), body);
  }
}

function isOpenMessage({ type, encoding }: Entity): boolean {
  return MESSAGES.has(type.value) && IDENTITY.has(encoding);
}

/** Whether it contains an encoded message that is not signed. */
function hasWrapped({ type, encoding, children }: Entity): boolean {
  if (type.value === "multipart/signed") return false;
  return (MESSAGES.has(type.value) && !IDENTITY.has(encoding)) || children.some(hasWrapped);
}

const MESSAGES: ReadonlySet<string> = new Set(["message/rfc822", "message/global"]);

const EMPTY = Buffer.alloc(0);
const CRLF = Buffer.from("\r\n");
/** Whole lines of base64: a few milliseconds of work. */
const TURN_BYTES = 57 * 8 * 1024;

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function isKnown(encoding: string): boolean {
  return IDENTITY.has(encoding) || encoding === "base64" || encoding === "quoted-printable";
}

function unsendable(how: string): SmtpRefusal {
  const what = `a part is ${how}, and has a line of more than ${LINE_BYTES_MAX} bytes or bytes that mail servers change`;
  return new SmtpRefusal(554, `5.6.0 ${what}: encode its content in base64 or quoted-printable first`);
}

interface Flaws {
  readonly isEightBit: boolean;
  readonly hasNul: boolean;
  readonly hasStrayEnds: boolean;
  readonly hasLongLines: boolean;
}

const [NUL, NEWLINE, RETURN] = [0x00, 0x0a, 0x0d];

/** Finds properties that a mail server might refuse or change, or null. */
function findFlaws(body: Buffer): Flaws | null {
  let hasLongLines = false;
  let hasStrayEnds = false;
  for (let at = 0; at < body.length; ) {
    const newline = body.indexOf(NEWLINE, at);
    const end = newline === -1 ? body.length : newline + 1;
    const lineEnd = newline > at && body[newline - 1] === RETURN ? newline - 1 : newline === -1 ? end : newline;
    hasStrayEnds ||= newline !== -1 && lineEnd === newline;
    hasLongLines ||= lineEnd - at > LINE_BYTES_MAX;
    if (!hasStrayEnds) {
      const carriage = body.indexOf(RETURN, at);
      hasStrayEnds = carriage !== -1 && carriage < lineEnd;
    }
    at = end;
  }
  const flaws = { isEightBit: !isAscii(body), hasNul: body.includes(NUL), hasStrayEnds, hasLongLines };
  return Object.values(flaws).includes(true) ? flaws : null;
}

function withCrlf(body: Buffer): Buffer {
  const lines = Buffer.alloc(body.length * 2);
  let used = 0;
  let ends = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] ?? NUL;
    const isEnd = byte === NEWLINE || byte === RETURN;
    if (isEnd) lines[used++] = RETURN;
    if (isEnd && ++ends > submissionLimits.linesMax) throw tooMany("lines or parts");
    lines[used++] = isEnd ? NEWLINE : byte;
    if (byte === RETURN && body[at + 1] === NEWLINE) at += 1;
  }
  return lines.subarray(0, used);
}

/** Formats the head. `encoding`: the body's new encoding; "" for none; undefined if it is unchanged. */
function head({ fields, type }: Entity, encoding?: string): string {
  let lines = "";
  for (const field of fields) {
    if (encoding === undefined || field.key !== "content-transfer-encoding") lines += formatField(field);
  }
  if (encoding === undefined || encoding === "") return lines;
  const isNamed = fields.some(({ key }) => key === "content-type");
  return `${lines}${isNamed ? "" : `Content-Type: ${type.value}; charset=utf-8\r\n`}Content-Transfer-Encoding: ${encoding}\r\n`;
}

/** Formats the field, unchanged if possible. */
function formatField(field: Field): string {
  const raw = /[^\0-\x7f]/.test(field.raw) ? ` ${inAscii(field)}` : field.raw;
  const lines = `${field.name}:${raw}`.split(/\r?\n/).map((line) => line.replace(/[\0-\x08\x0b-\x1f\x7f]/g, " "));
  const filled = lines.filter((line, at) => at === 0 || line.trim() !== "");
  return `${filled.map(shortened).join("\r\n")}\r\n`;
}

const ADDRESSES: ReadonlySet<string> = new Set([
  "to",
  "cc",
  "reply-to",
  "resent-to",
  "resent-cc",
  "resent-from",
  "disposition-notification-to",
]);
const ADDRESSES_CHARS_MAX = 32 * 1024;

function inAscii({ name, key, value }: Field): string {
  if (key === "subject") return foldLines(subjectValue(decodeHeader(value)), FOLD_CHARS);
  if (ADDRESSES.has(key)) return addressList(value.slice(0, ADDRESSES_CHARS_MAX));
  if (!key.startsWith("content-")) return foldLines(MimeNode.encodeHeaderValue(name, decodeHeader(value)), FOLD_CHARS);
  const quoted = value.replace(/"((?:[^"\\]|\\.)*)"/g, (all, text: string) =>
    /[^\0-\x7f]/.test(text) ? `"${encodeWord(text)}"` : all,
  );
  return quoted.replace(/[^\0-\x7f]/g, "?");
}

const FOLD_CHARS = 76;

/** Turns an address with letters beyond ASCII, which few servers accept in a header, into a name (RFC 6857, 3.1.8). */
function addressList(value: string): string {
  const written = addressParser(value)
    .flatMap((one) => one.group ?? [one])
    .flatMap(({ name, address = "" }) => {
      if (/[^\0-\x7f]/.test(address)) return [`${encodeWord(`${name} ${address}`.trim(), "B")} :;`];
      return toMailbox({ address, name })?.value ?? [];
    });
  return foldLines(written.join(", "), FOLD_CHARS);
}

function shortened(line: string): string {
  let written = "";
  let rest = line;
  while (rest.length > LINE_BYTES_MAX) {
    const blank = rest.slice(1, LINE_BYTES_MAX).search(/\s(?=\S*$)/) + 1;
    const cut = blank > 1 ? blank : HARD_CHARS;
    written += `${rest.slice(0, cut)}\r\n`;
    rest = blank > 1 ? rest.slice(cut) : ` ${rest.slice(cut)}`;
  }
  return written + rest;
}

const HARD_CHARS = 900;
