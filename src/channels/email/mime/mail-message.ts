import { randomUUID } from "node:crypto";
import { foldLines } from "nodemailer/lib/mime-funcs";
import type { VerifiedDomain } from "../../../domain/domain.ts";
import type { EncodedBody } from "./body-encoding.ts";
import { dkimSignature, type HeaderField } from "./dkim-signature.ts";
import { type Mailbox, subjectValue } from "./header-values.ts";

/** A message that is ready to be sent, several times if necessary. */
export interface MailMessage {
  readonly from: string;
  readonly to: string;
  /** Headers and body (RFC 5322), with CRLF line ends. ASCII, except for non-ASCII addresses. */
  readonly text: string;
}

export interface MailParts {
  readonly from: Mailbox;
  readonly to: Mailbox;
  readonly envelopeFrom: string;
  readonly subject: string;
  readonly messageId: string;
  readonly dateMs: number;
  /**
   * Names and values of further headers, sent unchanged: they need no encoding, and folding would break the address in
   * one of them.
   */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly html: EncodedBody;
  readonly text: EncodedBody | null;
  /** Null: the message is not signed. */
  readonly signer: { readonly domain: string; readonly key: NonNullable<VerifiedDomain["relay"]> } | null;
}

/** Builds the message from its parts, with the headers that nodemailer writes, in its order. */
export async function mailMessage(parts: MailParts): Promise<MailMessage> {
  const { from, to, envelopeFrom, subject, messageId, dateMs, headers, html, text, signer } = parts;
  const fields: HeaderField[] = headers.map(([name, value]) => [name, ` ${value}`]);
  fields.push(folded("From", from.value), folded("To", to.value));
  if (subject !== "") fields.push(folded("Subject", subjectValue(subject)));
  fields.push(folded("Message-ID", messageId));
  const dated = [dateOf(dateMs), MIME_VERSION] as const;
  let body: string;
  if (text === null) {
    fields.push(["Content-Transfer-Encoding", ` ${html.encoding}`], ...dated, HTML_ALONE);
    body = html.body === "" || html.body.endsWith("\r\n") ? html.body : `${html.body}\r\n`;
  } else {
    // Random, so no user's text can contain it.
    const boundary = `=_${randomUUID()}`;
    fields.push(...dated, ["Content-Type", ` multipart/alternative;\r\n boundary="${boundary}"`]);
    body = `--${boundary}\r\n${partOf("plain", text)}--${boundary}\r\n${partOf("html", html)}--${boundary}--\r\n`;
  }
  let head = "";
  for (const [name, value] of fields) head += `${name}:${value}\r\n`;
  const signature = signer === null ? "" : await dkimSignature(fields, body, signer);
  return { from: envelopeFrom, to: to.address, text: `${signature}${head}\r\n${body}` };
}

const MIME_VERSION: HeaderField = ["MIME-Version", " 1.0"];
const HTML_ALONE: HeaderField = ["Content-Type", " text/html; charset=utf-8"];

function dateOf(dateMs: number): HeaderField {
  return ["Date", ` ${new Date(dateMs).toUTCString().replace("GMT", "+0000")}`];
}

/** Folds the field (RFC 5322, 2.2.3) if it is long, as nodemailer does. */
function folded(name: string, value: string): HeaderField {
  const line = `${name}: ${value}`;
  return [name, (line.length < LINE_MAX ? line : foldLines(line, LINE_MAX)).slice(name.length + 1)];
}

const LINE_MAX = 76;

function partOf(type: "plain" | "html", { encoding, body }: EncodedBody): string {
  return `Content-Type: text/${type}; charset=utf-8\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}\r\n`;
}
