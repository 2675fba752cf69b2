import { encodeWord } from "nodemailer/lib/mime-funcs";
import MimeNode from "nodemailer/lib/mime-node";

/** A mailbox as RFC 5322, 3.4 has it. */
export interface NamedAddress {
  readonly address: string;
  readonly name: string | null;
}

/** The same as a header's value, and as the envelope has it; null where it can be neither. */
export interface TenantQueue {
  readonly value: string;
  readonly address: string;
}

/**
 * A subject as its header has it, in encoded words (RFC 2047) where it needs them. A text in which a reader would find
 * encoded words that nobody encoded is encoded itself, so that it arrives as it was written; nodemailer lets such a text
 * pass, as one that its caller has encoded.
 */
export function subjectValue(subject: string): string {
  if (PLAIN_TEXT.test(subject) && !subject.includes("=?")) return subject;
  return MimeNode.encodeHeaderValue("Subject", literalText(subject));
}

/** Printable ASCII without quotation marks, which nodemailer encodes. */
const PLAIN_TEXT = /^[ !#-~]*$/;

/** Names and addresses of the usual kinds at once, of all others as nodemailer writes them. */
export function mailboxOf({ address, name }: NamedAddress): TenantQueue | null {
  if (PLAIN_ADDRESS.test(address) && !address.includes("@xn--") && !address.includes(".xn--")) {
    if (name === null || name === "") return { value: address, address };
    if (PLAIN_NAME.test(name)) return { value: `${name} <${address}>`, address };
  }
  const [inEnvelope = ""] = new MimeNode("text/plain").setEnvelope({ to: { address, name: "" } }).getEnvelope().to;
  // What would end the address in a command.
  if (inEnvelope === "" || /[\r\n<>]/.test(inEnvelope)) return null;
  return { value: withoutQuotes(MimeNode.encodeHeaderValue("To", { address, name: name ?? "" })), address: inEnvelope };
}

const PLAIN_NAME = /^[\w ]*$/;
/** A dot-string at a domain in lower case whose last label is none of a number. */
const PLAIN_ADDRESS =
  /^[\w!#$%&'*+\-/=?^`{|}~]+(?:\.[\w!#$%&'*+\-/=?^`{|}~]+)*@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/;

function literalText(text: string): string {
  return text.includes("=?") ? encodeWord(text, "Q", WORD_CHARS_MAX) : text;
}

/** What nodemailer itself begins a new encoded word after. */
const WORD_CHARS_MAX = 52;

/**
 * Names in which a reader would find encoded words are encoded, too. nodemailer quotes them, and inside quotes nothing
 * should be decoded (RFC 2047, 5); many readers do.
 */
function withoutQuotes(value: string): string {
  const [, name, address] = QUOTED_NAME.exec(value) ?? [];
  return name === undefined ? value : `${literalText(name.replace(/\\(.)/g, "$1"))} ${address}`;
}

const QUOTED_NAME = /^"((?:[^"\\]|\\.)*=\?(?:[^"\\]|\\.)*)" (<[^<>]*>)$/;
