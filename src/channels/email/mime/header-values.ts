import { encodeWord } from "nodemailer/lib/mime-funcs";
import MimeNode from "nodemailer/lib/mime-node";

/** A mailbox (RFC 5322, 3.4). */
export interface NamedAddress {
  readonly address: string;
  readonly name: string | null;
}

/** A mailbox as a header's value and as an envelope address. */
export interface Mailbox {
  readonly value: string;
  readonly address: string;
}

/**
 * Converts a subject to a header's value, in encoded words (RFC 2047) if necessary. A text that already looks like
 * encoded words is encoded too, so it arrives unchanged; nodemailer would pass it through as already encoded.
 */
export function subjectValue(subject: string): string {
  if (PLAIN_TEXT.test(subject) && !subject.includes("=?") && !UNFOLDABLE.test(subject)) return subject;
  return MimeNode.encodeHeaderValue("Subject", literalText(subject));
}

/** A word, or a gap, that makes a line of more than 78 characters (RFC 5322, 2.1.1): encoded words can be folded anywhere. */
const UNFOLDABLE = /[^ ]{60}| {60}/;

/** Printable ASCII without quotation marks, which nodemailer encodes. */
const PLAIN_TEXT = /^[ !#-~]*$/;

/** Formats common names and addresses directly, and leaves all others to nodemailer. */
export function toMailbox({ address, name }: NamedAddress): Mailbox | null {
  if (PLAIN_ADDRESS.test(address) && !address.includes("@xn--") && !address.includes(".xn--")) {
    if (name === null || name === "") return { value: address, address };
    if (PLAIN_NAME.test(name) && !UNFOLDABLE.test(name)) return { value: `${name} <${address}>`, address };
  }
  const [inEnvelope = ""] = new MimeNode("text/plain").setEnvelope({ to: { address, name: "" } }).getEnvelope().to;
  // Characters that would end the address in a command.
  if (inEnvelope === "" || /[\r\n<>]/.test(inEnvelope)) return null;
  return { value: withoutQuotes(MimeNode.encodeHeaderValue("To", { address, name: name ?? "" })), address: inEnvelope };
}

const PLAIN_NAME = /^[\w ]*$/;
/** A dot-string at a domain in lower case whose last label is not a number. */
const PLAIN_ADDRESS =
  /^[\w!#$%&'*+\-/=?^`{|}~]+(?:\.[\w!#$%&'*+\-/=?^`{|}~]+)*@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/;

function literalText(text: string): string {
  return text.includes("=?") || (ASCII.test(text) && UNFOLDABLE.test(text))
    ? encodeWord(text, "Q", WORD_CHARS_MAX)
    : text;
}

/** Other texts become encoded words anyhow. */
const ASCII = /^[ -~]*$/;

/** The length at which nodemailer starts a new encoded word. */
const WORD_CHARS_MAX = 52;

/**
 * Also encodes names with words that no line takes, and those that look like encoded words. nodemailer quotes them, but many readers decode inside quotes
 * although they should not (RFC 2047, 5).
 */
function withoutQuotes(value: string): string {
  const [, quoted, plain = "", address] = NAMED.exec(value) ?? [];
  const name = quoted?.replace(/\\(.)/g, "$1") ?? plain;
  const literal = literalText(name);
  return literal === name ? value : `${literal} ${address}`;
}

const NAMED = /^(?:"((?:[^"\\]|\\.)*)"|([\w ]+)) (<[^<>]*>)$/;
