import { foldLines } from "nodemailer/lib/mime-funcs";
import MimeNode from "nodemailer/lib/mime-node";
import type { VerifiedDomain } from "../../../domain/channels/domain.ts";
import type { SmtpFailure } from "../smtp/smtp-replies.ts";
import type { EncodedBody } from "./body-encoding.ts";
import { dkimSignature, type HeaderField } from "./dkim-signature.ts";
import { type Mailbox, subjectValue } from "./header-values.ts";
import type { MessageRest } from "./message-rest.ts";
import { type Attachment, alternative, withAttachments } from "./multipart.ts";

/** A message that is ready to be sent, several times if necessary. */
export interface MailMessage {
  readonly from: string;
  readonly to: string;
  /** Default: none, the message goes to `to` alone. */
  readonly further?: FurtherRecipients;
  /**
   * Whether an address in its headers has letters beyond ASCII, which only relays with SMTPUTF8 accept (RFC 6532).
   * Default: false.
   */
  readonly isUtf8?: boolean;
  /** Headers and body (RFC 5322), with CRLF line ends. ASCII, except for non-ASCII addresses. */
  readonly text: string;
  /** The rest of the body, if the message has attachments or is sent unchanged. */
  readonly rest?: MessageRest;
  /** Whether the body has bytes beyond ASCII, which only servers with 8BITMIME accept (RFC 6152). */
  readonly isEightBit?: true;
}

/** Recipients of the envelope beside the main one. */
export interface FurtherRecipients {
  readonly addresses: readonly string[];
  /**
   * Judges the server's refusals of recipients (by address, at least one). Null if the others get the message;
   * otherwise the reason why it is not sent.
   */
  judge(refused: ReadonlyMap<string, SmtpFailure>): SmtpFailure | null;
  /** Called when the server accepted the message for others but not for these, in a further transaction. */
  missed(addresses: readonly string[], failure: SmtpFailure): void;
}

export interface MailParts {
  readonly from: Mailbox;
  readonly to: Mailbox;
  readonly cc?: readonly Mailbox[];
  readonly replyTo?: readonly Mailbox[];
  readonly envelopeFrom: string;
  readonly further?: FurtherRecipients;
  readonly subject: string;
  readonly messageId: string;
  readonly dateMs: number;
  /**
   * Names and values of further headers, sent unchanged: they need no encoding, and folding would break the address in
   * one of them.
   */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Names and values of the tenant's headers, which are encoded and folded if necessary. */
  readonly ownHeaders?: readonly (readonly [name: string, value: string])[];
  /** Null if the message is plain text. */
  readonly html: EncodedBody | null;
  readonly text: EncodedBody | null;
  readonly attachments?: readonly Attachment[];
  /** Null if the message is not signed. */
  readonly signer: { readonly domain: string; readonly key: NonNullable<VerifiedDomain["relay"]> } | null;
}

/** Builds the message from its parts, with the headers that nodemailer writes, in its order. */
export async function mailMessage(parts: MailParts): Promise<MailMessage> {
  const { from, to, cc, replyTo, envelopeFrom, further, subject, messageId, dateMs, headers, signer } = parts;
  const fields: HeaderField[] = headers.map(([name, value]) => [name, ` ${value}`]);
  for (const [name, value] of parts.ownHeaders ?? [])
    fields.push(folded(name, MimeNode.encodeHeaderValue(name, value)));
  fields.push(folded("From", from.value), folded("To", to.value));
  if (cc !== undefined && cc.length > 0) fields.push(folded("Cc", joinMailboxes(cc)));
  if (replyTo !== undefined && replyTo.length > 0) fields.push(folded("Reply-To", joinMailboxes(replyTo)));
  if (subject !== "") fields.push(folded("Subject", subjectValue(subject)));
  fields.push(folded("Message-ID", messageId));
  const dated = [formatDate(dateMs), MIME_VERSION] as const;
  const { body, rest } = buildBody(parts, fields, dated);
  let head = "";
  for (const [name, value] of fields) head += `${name}:${value}\r\n`;
  const signature = signer === null ? "" : await dkimSignature(fields, { text: body, rest }, signer);
  const text = `${signature}${head}\r\n${body}`;
  const isUtf8 = [from, to, ...(cc ?? []), ...(replyTo ?? [])].some(({ value }) => NOT_ASCII.test(value));
  return {
    from: envelopeFrom,
    to: to.address,
    text,
    ...(further && { further }),
    ...(rest && { rest }),
    ...(isUtf8 && { isUtf8 }),
  };
}

interface Body {
  readonly body: string;
  readonly rest?: MessageRest;
}

/** Adds the fields that describe the body. */
function buildBody(
  { html, text, attachments = [] }: MailParts,
  fields: HeaderField[],
  dated: readonly HeaderField[],
): Body {
  if (attachments.length > 0) {
    const { type, head, rest } = withAttachments({ html, text }, attachments);
    fields.push(...dated, type);
    return { body: head, rest };
  }
  const alone = html === null || text === null ? (html ?? text) : null;
  if (alone !== null) {
    fields.push(["Content-Transfer-Encoding", ` ${alone.encoding}`], ...dated, html === null ? TEXT_ALONE : HTML_ALONE);
    return { body: alone.body === "" || alone.body.endsWith("\r\n") ? alone.body : `${alone.body}\r\n` };
  }
  const { type, body } = alternative({ html, text });
  fields.push(...dated, type);
  return { body };
}

/** Characters beyond RFC 5322, which RFC 6532 allows. */
export const NOT_ASCII = /[^\0-\x7f]/;
const MIME_VERSION: HeaderField = ["MIME-Version", " 1.0"];
const HTML_ALONE: HeaderField = ["Content-Type", " text/html; charset=utf-8"];
const TEXT_ALONE: HeaderField = ["Content-Type", " text/plain; charset=utf-8"];

function joinMailboxes(mailboxes: readonly Mailbox[]): string {
  return mailboxes.map(({ value }) => value).join(", ");
}

export function formatDate(dateMs: number): HeaderField {
  return ["Date", ` ${new Date(dateMs).toUTCString().replace("GMT", "+0000")}`];
}

/** Folds the field (RFC 5322, 2.2.3) if it is long, as nodemailer does. */
export function folded(name: string, value: string): HeaderField {
  const line = `${name}: ${value}`;
  return [name, (line.length < LINE_MAX ? line : foldLines(line, LINE_MAX)).slice(name.length + 1)];
}

const LINE_MAX = 76;
