import PostalMime, { type Attachment, type Email, type Header, type PostalMimeOptions } from "postal-mime";
import { htmlToText } from "../html-to-text.ts";
import { Base64Body } from "./base64-body.ts";
import { decodeHeader } from "./header-values.ts";
import { submissionLimits } from "./limits.ts";
import { SmtpRefusal } from "./smtp-refusal.ts";

const { headerBytesMax, linesMax, nestingMax, textBytesMax } = submissionLimits;

/** A header such as `text/plain; charset=utf-8`. */
interface Structured {
  readonly value: string;
  readonly params: Readonly<Record<string, string>>;
}

interface BodyDecoder {
  update(line: Uint8Array): void;
  finalize(): Promise<Uint8Array | ArrayBuffer>;
}

/** A part of a message. */
interface Part {
  readonly state: "header" | "body" | "finished";
  readonly headers: Header[];
  readonly contentType: { readonly parsed: Structured; readonly multipart: string | false };
  readonly contentDisposition: { readonly parsed: Structured };
  readonly contentTransferEncoding: { readonly encoding: string };
  readonly contentId?: string;
  contentDecoder: BodyDecoder | null;
  /** Decoded from its transfer encoding. */
  readonly content: Uint8Array | ArrayBuffer | null;
  /** Takes one line. */
  feed(line: Uint8Array): void;
  /** Decoded from its character set. */
  getTextContent(): string;
}

type Form = "plain" | "html";
type Texts = Readonly<Partial<Record<Form, readonly { readonly value: string }[]>>>;

/** What the library has and its types leave out. Its version is pinned, and tests notice if one of these is gone. */
interface Inside {
  readonly root: Part;
  readonly currentNode: Part;
  readonly attachments: Attachment[];
  /** By the part, or the group of alternatives, that they belong to. */
  readonly textMap: ReadonlyMap<unknown, Texts>;
  processLine(line: Uint8Array, isFinal: boolean): Promise<void> | undefined;
  finalize(): Promise<void>;
  isInlineTextNode(part: Part): boolean;
  collectNode(part: Part, alternative: unknown, isRelated: boolean): Promise<void>;
  collectAttachment(part: Part, content: Uint8Array | ArrayBuffer): void;
  renderTextContent(): void;
  buildMessage(): Email;
}

const Library = PostalMime as unknown as new (options: PostalMimeOptions) => PostalMime & Inside;

/** How much is read in one turn of the event loop: five thousand short lines, or half a megabyte. */
const TURN_WORK = 500_000;
const LINE_WORK = 100;
/** A line that ends a part (RFC 2046, 5.1.1) is far shorter: it is compared with the boundary of each multipart around it. */
const BOUNDARY_LINE_BYTES_MAX = 998;
/** Of a longer line. */
const PIECE_BYTES = 64 * 1024;
const [NEWLINE, DASH, EQUALS] = [0x0a, 0x2d, 0x3d];
const SOFT_BREAK = Uint8Array.of(EQUALS);
const CALENDARS: ReadonlySet<string> = new Set(["text/calendar", "application/ics"]);

/**
 * The library's parser, with work in proportion to the message where the library's grows faster, and in turns with other work.
 *
 * M1. Base64 is decoded into one array: the library keeps an array for each `=`.
 * M2. A text is decoded from its character set once its bytes and lines are known to be few.
 * M3. HTML is made into text in linear time, and only beside other text.
 * M4. Nothing is read of headers here: who needs one reads it within its own bounds (`header-values.ts`).
 */
export class BoundedMime extends Library {
  private work = 0;
  private textBytes = 0;
  private textLines = 0;

  constructor() {
    super({ forceRfc822Attachments: true, maxNestingDepth: nestingMax, maxHeadersSize: headerBytesMax });
  }

  /** The library calls it for each line, and awaits what it returns: a promise for each of them would take longer than the rest. */
  override processLine(line: Uint8Array, isFinal: boolean): Promise<void> | undefined {
    const isBoundary = mayBeBoundary(line);
    this.work += LINE_WORK + line.length * (isBoundary ? nestingMax : 1);
    if (this.work < TURN_WORK) return this.take(line, isFinal, isBoundary);
    this.work = 0;
    return new Promise(setImmediate).then(() => this.take(line, isFinal, isBoundary));
  }

  private take(line: Uint8Array, isFinal: boolean, isBoundary: boolean): Promise<void> | undefined {
    const part = this.currentNode;
    if (part.state === "body" && !isBoundary) {
      if (line.length > PIECE_BYTES) return this.takeLong(part, line, isFinal);
      part.feed(line);
      return isFinal ? this.finalize() : undefined;
    }
    const hadBody = part.state !== "header";
    const taken = super.processLine(line, isFinal);
    const hasBody = !hadBody && part.state !== "header";
    if (hasBody && part.contentTransferEncoding.encoding.includes("base64")) part.contentDecoder = new Base64Body();
    return taken;
  }

  /** A long line may be all of a large file: what has to be decoded is, piece by piece, each in a turn of its own. */
  private async takeLong(part: Part, line: Uint8Array, isFinal: boolean): Promise<void> {
    for (const piece of piecesOf(part, line)) {
      part.feed(piece);
      await new Promise(setImmediate);
    }
    if (isFinal) await this.finalize();
  }

  /** Sorts the part, and then those in it, into texts and files. Throws an `SmtpRefusal`. */
  override async collectNode(part: Part, alternative: unknown, isRelated: boolean): Promise<void> {
    if (part.contentType.multipart === false && this.isInlineTextNode(part)) this.boundText(part);
    return super.collectNode(part, alternative, isRelated);
  }

  private boundText({ content }: Part): void {
    if (content === null) return;
    this.textBytes += content.byteLength;
    if (this.textBytes > textBytesMax) {
      throw new SmtpRefusal(554, "5.6.0 the text and the HTML of the message are too large: 512 KB is possible");
    }
    this.textLines += linesOf(new Uint8Array(content));
    if (this.textLines > linesMax) {
      throw new SmtpRefusal(554, "5.6.0 the text of the message has more lines than are taken");
    }
  }

  override collectAttachment(part: Part, content: Uint8Array | ArrayBuffer): void {
    const { value: mimeType, params } = part.contentType.parsed;
    const name = part.contentDisposition.parsed.params["filename"] || params["name"] || "";
    // Calendars are in UTF-8 (RFC 5545, 3.1.4) where nobody says otherwise, and whoever gets it is told no character set.
    const isText = CALENDARS.has(mimeType) && content.byteLength <= textBytesMax;
    this.attachments.push({
      filename: name === "" ? null : decodeHeader(name),
      mimeType,
      disposition: null,
      ...(part.contentId !== undefined && { contentId: part.contentId }),
      content: isText ? Buffer.from(part.getTextContent()) : content,
    });
  }

  /** `buildMessage` puts the texts together. */
  override renderTextContent(): void {}

  override buildMessage(): Email {
    const [html, text] = [this.textOf("html"), this.textOf("plain")];
    return {
      headers: this.root.headers,
      headerLines: [],
      attachments: this.attachments,
      ...(html !== "" && { html }),
      ...(text !== "" && { text }),
    };
  }

  /** All texts in one form, if any has it: those without it are made into it from their other one. */
  private textOf(form: Form): string {
    const texts = [...this.textMap.values()];
    if (texts.every((one) => one[form] === undefined)) return "";
    const { other, convert } = CONVERSIONS[form];
    const valuesOf = (one: Texts) =>
      one[form]?.map(({ value }) => value) ?? one[other]?.map(({ value }) => convert(value));
    return texts.flatMap((one) => valuesOf(one) ?? []).join("\n");
  }
}

const CONVERSIONS: Readonly<Record<Form, { readonly other: Form; convert(value: string): string }>> = {
  html: { other: "plain", convert: textToHtml },
  plain: { other: "html", convert: htmlToText },
};

function textToHtml(text: string): string {
  return `<div>${Bun.escapeHTML(text.trim()).replaceAll("\n", "<br>")}</div>`;
}

/** Lines that together are decoded as the line is. */
function* piecesOf({ contentTransferEncoding: { encoding } }: Part, line: Uint8Array): Iterable<Uint8Array> {
  const isQuoted = encoding.includes("quoted-printable");
  if (!isQuoted && !encoding.includes("base64")) {
    yield line;
    return;
  }
  let start = 0;
  while (line.length - start > PIECE_BYTES) {
    let end = start + PIECE_BYTES;
    // An escaped byte is not cut in two: =3D
    if (line[end - 1] === EQUALS) end -= 1;
    else if (line[end - 2] === EQUALS) end -= 2;
    const piece = line.subarray(start, end);
    // A line that ends with an equals sign goes on in the next one.
    yield isQuoted ? Buffer.concat([piece, SOFT_BREAK]) : piece;
    start = end;
  }
  yield line.subarray(start);
}

function mayBeBoundary(line: Uint8Array): boolean {
  return line[0] === DASH && line[1] === DASH && line.length <= BOUNDARY_LINE_BYTES_MAX;
}

function linesOf(bytes: Uint8Array): number {
  let lines = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}
