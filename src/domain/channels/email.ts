import { limits } from "../limits.ts";
import { parseUrl } from "../texts/parse-url.ts";
import { splitAddress } from "../texts/split-address.ts";

export const TEMPLATE_SLUG = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/**
 * The events to track in a message, as the message, its template or its tenant sets it. If a member is absent, the next
 * of these decides, and finally `DEFAULT_TRACKING`.
 */
export type TrackingChoice = { readonly opens?: boolean; readonly clicks?: boolean };

export const DEFAULT_TRACKING = { opens: true, clicks: true } as const satisfies TrackingChoice;

/** A registered e-mail template, before its placeholders are filled. */
export interface EmailTemplate {
  readonly subject: string;
  readonly html: string;
  readonly text: string | null;
  /** Absent: the template leaves it to the tenant. */
  readonly tracking?: TrackingChoice;
  /** The topic of messages made from it that do not name one; absent: no topic. */
  readonly topic?: string;
}

/** A tenant's own sender. */
export interface EmailSender {
  readonly fromAddress: string;
  readonly fromName: string | null;
  /** The tenant's own relay; null uses the platform's. */
  readonly smtpUrl: string | null;
  /**
   * The UTC day on which its dedicated address began to send, `YYYY-MM-DD`, for an address that must be warmed up.
   * Absent: no warm-up.
   */
  readonly warmUpFrom?: string;
}

/** Returns the key under which a suppression is stored: addresses are compared case-insensitively. */
export function normaliseAddress(address: string): string {
  return address.toLowerCase();
}

/**
 * Whether the domain part of an address names a machine: an address literal (RFC 5321, 4.1.3), a text that resolvers
 * read as an IPv4 address (no top-level domain is a number), or the resolving machine itself (RFC 6761, 6.3). A mail
 * server connects to such a machine directly, from a position in the network that no tenant has.
 */
export function namesMachine(domain: string): boolean {
  return /^\[|(?:^|\.)(?:\d+|0x[0-9a-f]*|localhost)\.?$/i.test(domain);
}

/**
 * Parses one mailbox as SMTP defines it (RFC 5321, 4.1.2): a dot-string or quoted local part of at most 64 bytes, and a
 * domain. ASCII only: internationalised domains must be in their `xn--` form, and non-ASCII local parts (RFC 6531) are
 * refused, because not every relay on the way carries them. Address literals are refused as well: mail to a machine's
 * address would go into the relay's own network.
 *
 * Returns the address without unnecessary quotes, which gives each mailbox one spelling; null when the text is anything
 * else (a list, a display name, a comment, a group, an empty part, too long).
 */
export function parseAddress(text: string): string | null {
  if (text.length > limits.addressBytesMax || !PRINTABLE_ASCII.test(text)) return null;
  const { local, domain } = splitAddress(text) ?? NOTHING;
  if (local.length === 0 || local.length > LOCAL_BYTES_MAX || !isDomain(domain)) return null;
  if (DOT_STRING.test(local)) return text;
  return QUOTED_STRING.test(local) ? `${withoutNeedlessQuotes(local)}@${domain}` : null;
}

/**
 * Parses one recipient as `parseAddress` does, beyond ASCII too: an internationalised domain becomes its A-labels (RFC
 * 5890), so that each mailbox keeps one spelling, and a local part may have letters of any script (RFC 6531), which
 * only relays with SMTPUTF8 accept. Null when the text is anything else.
 */
export function parseRecipient(text: string): string | null {
  if (PRINTABLE_ASCII.test(text)) return parseAddress(text);
  const { local: given, domain: host } = splitAddress(text) ?? NOTHING;
  if (given.length > GIVEN_LOCAL_CHARS_MAX || MARKS_TOO_MANY.test(given)) return null;
  const domain = toAsciiDomain(host);
  if (domain === null) return null;
  const local = given.normalize("NFC");
  const address = `${local}@${domain}`;
  if (PRINTABLE_ASCII.test(local)) return parseAddress(address);
  const isShort = Buffer.byteLength(local) <= LOCAL_BYTES_MAX && Buffer.byteLength(address) <= limits.addressBytesMax;
  return isShort && local.isWellFormed() && UTF8_DOT_STRING.test(local) ? address : null;
}

/**
 * Whether mail servers may read a route to another domain into an address that `parseRecipient` accepts (RFC 5321,
 * appendix F.2): `user%other.example@relay.example`, `other.example!user@relay.example`, or the same within quotes,
 * where some also interpret `@`. Mail to such addresses is refused, because the domain does not determine where it goes.
 */
export function isRoutedOn(address: string): boolean {
  return /[%!@]/.test(splitAddress(address)?.local ?? "");
}

/** Returns the spelling under which a recipient is stored and compared, whatever its source. */
export function recipientKey(text: string): string {
  return normaliseAddress(parseRecipient(text) ?? text);
}

/** Returns the domain as A-labels; null: it is not a domain. */
function toAsciiDomain(domain: string): string | null {
  if (domain.length > limits.addressBytesMax || !LABELS.test(domain)) return null;
  const host = parseUrl(`http://${domain}`)?.hostname ?? "";
  return isDomain(host) ? host : null;
}

/** Excludes every character that ends the host in a URL. */
const LABELS = /^[A-Za-z0-9.\u0080-\u{10ffff}-]+$/u;
const NOTHING = { local: "", domain: "" };
const LOCAL_BYTES_MAX = 64;
/** Before letters are composed with their marks: no letter has more than three UTF-16 units per two bytes. */
const GIVEN_LOCAL_CHARS_MAX = 2 * LOCAL_BYTES_MAX;
/**
 * Marks on one letter, more than any script needs: sorting them takes time that grows with the square of their number.
 */
const MARKS_TOO_MANY = /\p{M}{9}/u;
const PRINTABLE_ASCII = /^[\x20-\x7e]+$/;
const DOT_STRING = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
/**
 * The same with letters, marks and symbols beyond ASCII, but without characters that are blank, invisible or change the
 * text direction.
 */
const UTF8_DOT_STRING =
  /^(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]|[^\0-\x7f\p{C}\p{Z}])+(?:\.(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]|[^\0-\x7f\p{C}\p{Z}])+)*$/u;
/** Without angle brackets, which some mail software on the way takes for the ends of the address. */
const QUOTED_STRING = /^"(?:[\x20\x21\x23-\x3b\x3d\x3f-\x5b\x5d-\x7e]|\\[\x20-\x3b\x3d\x3f-\x7e])*"$/;
/** Labels of at most 63 letters, digits and inner hyphens (RFC 1035, 2.3.1). */
const DOMAIN = /^(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

function withoutNeedlessQuotes(quoted: string): string {
  const content = quoted.slice(1, -1).replace(/\\(.)/g, "$1");
  return DOT_STRING.test(content) ? content : `"${content.replace(/["\\]/g, "\\$&")}"`;
}

function isDomain(domain: string): boolean {
  return DOMAIN.test(domain) && !namesMachine(domain);
}
