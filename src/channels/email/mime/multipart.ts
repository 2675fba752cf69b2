import { randomUUID } from "node:crypto";
import MimeNode from "nodemailer/lib/mime-node";
import { type EncodedBody, withCrlf } from "./body-encoding.ts";
import type { HeaderField } from "./dkim-signature.ts";
import { typeByName } from "./file-types.ts";
import { LinesAndFiles, type MessageRest } from "./message-rest.ts";

/** A file that a message carries. */
export interface Attachment {
  readonly filename: string;
  /** Default: determined by the filename's ending. */
  readonly contentType?: string;
  /** The id under which the HTML displays the file; undefined for an ordinary attachment. */
  readonly contentId?: string;
  readonly body: Uint8Array;
}

interface Bodies {
  readonly html: EncodedBody | null;
  readonly text: EncodedBody | null;
}

interface Multipart {
  readonly type: HeaderField;
  readonly body: string;
}

/** Joins text and HTML of the same message (RFC 2046, 5.1.4). */
export function alternative({ html, text }: Bodies): Multipart {
  const boundary = newBoundary();
  const parts = [text && formatPart("plain", text), html && formatPart("html", html)].filter((part) => part !== null);
  const body = `${parts.map((part) => `--${boundary}\r\n${part}`).join("")}--${boundary}--\r\n`;
  return { type: multipartType("alternative", boundary), body };
}

/** Joins the message and its files: those with a content id beside the HTML (RFC 2387), the others beside the whole. */
export function withAttachments(
  bodies: Bodies,
  attachments: readonly Attachment[],
): { readonly type: HeaderField; readonly head: string; readonly rest: MessageRest } {
  const isInline = ({ contentId }: Attachment) => contentId !== undefined && bodies.html !== null;
  const shown = attachments.filter(isInline);
  const attached = attachments.filter((one) => !isInline(one));
  const pieces: (string | Uint8Array)[] = [];
  const message = messagePart(bodies, shown, pieces);
  if (attached.length === 0) return cut(message, pieces);
  const boundary = newBoundary();
  const head = `--${boundary}\r\n${fieldLine(message.type)}\r\n${message.head}`;
  for (const one of attached) addFile(boundary, one, pieces);
  pieces.push(`\r\n--${boundary}--\r\n`);
  return cut({ type: multipartType("mixed", boundary), head }, pieces);
}

/** Cuts at a line end, which the rest begins with: a signature sees whole lines. */
function cut({ type, head }: MessagePart, pieces: readonly (string | Uint8Array)[]) {
  const [first = "", ...others] = joined(pieces);
  const [end, ...lines] = typeof first === "string" ? [first.slice(0, 2), first.slice(2)] : ["", first];
  return { type, head: head + end, rest: new LinesAndFiles([...lines, ...others]) };
}

interface MessagePart {
  readonly type: HeaderField;
  /** The text before the first file. */
  readonly head: string;
}

/** Adds the files that the HTML displays, and the text after them, to `pieces`. */
function messagePart(bodies: Bodies, shown: readonly Attachment[], pieces: (string | Uint8Array)[]): MessagePart {
  const { html, text } = bodies;
  if (shown.length === 0) {
    if (html !== null && text !== null) {
      const { type, body } = alternative(bodies);
      return { type, head: body };
    }
    const [kind, one] = html === null ? (["plain", text] as const) : (["html", html] as const);
    const { encoding = "7bit", body = "" } = one ?? {};
    const type = ` text/${kind}; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}`;
    return { type: ["Content-Type", type], head: `${body}` };
  }
  const related = newBoundary();
  const relatedType = multipartType("related", related, ' type="text/html";');
  let head = html === null ? "" : `--${related}\r\n${formatPart("html", html).replace(/\r\n$/, "")}`;
  for (const one of shown) addFile(related, one, pieces);
  pieces.push(`\r\n--${related}--\r\n`);
  if (text === null) return { type: relatedType, head };
  const boundary = newBoundary();
  head = `--${boundary}\r\n${formatPart("plain", text)}--${boundary}\r\n${fieldLine(relatedType)}\r\n${head}`;
  pieces.push(`\r\n--${boundary}--\r\n`);
  return { type: multipartType("alternative", boundary), head };
}

function addFile(
  boundary: string,
  { filename, contentType, contentId, body }: Attachment,
  pieces: (string | Uint8Array)[],
) {
  const type = contentType ?? typeByName(filename);
  const message = MESSAGE.test(type) ? messageLines(body) : null;
  // A part rather than a message, which would get a date.
  const node = new MimeNode("multipart/mixed").createChild(
    message === null && MESSAGE.test(type) ? "application/octet-stream" : type,
    { filename },
  );
  const isShownImage = contentId !== undefined && /^image\//i.test(String(node.getHeader("Content-Type")));
  if (contentId !== undefined) node.setHeader("Content-ID", `<${contentId}>`);
  node.setHeader("Content-Transfer-Encoding", message === null ? "base64" : "7bit");
  node.setHeader("Content-Disposition", isShownImage ? "inline" : "attachment");
  pieces.push(`\r\n--${boundary}\r\n${strictlyNamed(node.buildHeaders())}\r\n\r\n`, message ?? body);
}

const MESSAGE = /^message\/rfc822\b/i;
/** RFC 5322, 2.1.1. */
const LONG_LINE = /[^\r\n]{999}/;
const NOT_7BIT = /[\0\x80-\xff]/;

/**
 * Returns a file as an attached message, which must not be encoded (RFC 2046, 5.2.1). Null if it is no message or needs
 * encoding, as not all relays accept 8bit; it is then an ordinary file.
 */
function messageLines(body: Uint8Array): string | null {
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString("latin1");
  if (NOT_7BIT.test(text) || LONG_LINE.test(text) || !/^[!-9;-~]+:/.test(text)) return null;
  return withCrlf(text);
}

/**
 * Names the file in the type in the form of its disposition (RFC 2231), because encoded words must not be within quotes
 * (RFC 2047, 5).
 */
function strictlyNamed(headers: string): string {
  if (!ENCODED_NAME.test(headers)) return headers;
  const parameters = headers.match(/filename\*\d+\*=[^\s;]+/g) ?? [];
  return headers.replace(ENCODED_NAME, () => parameters.map((one) => `;\r\n ${one.slice("file".length)}`).join(""));
}

const ENCODED_NAME = /;\s+name="=\?[^"]*"/;

/** Joins neighbouring lines to one piece. */
function joined(pieces: readonly (string | Uint8Array)[]): readonly (string | Uint8Array)[] {
  const list: (string | Uint8Array)[] = [];
  for (const piece of pieces) {
    const last = list.at(-1);
    if (typeof piece === "string" && typeof last === "string") list[list.length - 1] = last + piece;
    else list.push(piece);
  }
  return list;
}

/** Creates a random boundary, which no user's text can contain. */
function newBoundary(): string {
  return `=_${randomUUID()}`;
}

function multipartType(kind: "mixed" | "alternative" | "related", boundary: string, more = ""): HeaderField {
  return ["Content-Type", ` multipart/${kind};${more}\r\n boundary="${boundary}"`];
}

function fieldLine([name, lines]: HeaderField): string {
  return `${name}:${lines}\r\n`;
}

function formatPart(type: "plain" | "html", { encoding, body }: EncodedBody): string {
  return `Content-Type: text/${type}; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}\r\n`;
}
