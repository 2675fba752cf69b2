import { splitAddress } from "./split-address.ts";

/** The most characters of a provider's text in a log line. */
const TEXT_CHARS_MAX = 300;
/** Characters to read before masking, which shortens the text. */
const TEXT_CHARS_READ = 2 * TEXT_CHARS_MAX;

/** Masks a recipient for logs: `a***@example.com`, `+34***89`. */
export function maskedRecipient(recipient: string): string {
  const parts = splitAddress(recipient);
  if (parts !== null && parts.local !== "") return `${parts.local.slice(0, 1)}***@${parts.domain}`;
  return recipient.length < 8 ? "***" : `${recipient.slice(0, 3)}***${recipient.slice(-2)}`;
}

/** Addresses, WhatsApp's ids of people, and numbers that servers repeat in their replies. */
const RECIPIENTS =
  /[^\s<>()[\]"',;:]{1,64}@[\w.-]{1,255}|\b[A-Za-z]{2}\.(?:ENT\.)?(?=[A-Za-z]{0,32}\d)[A-Za-z0-9]{10,128}|\+?\d{9,15}/g;

/** The possible beginning of an address at the end of a text. */
const HALF = /[^\s<>()[\]"',;:]{1,320}$/;

/** Prepares a provider's reply for logs: shortened, with the recipients in it masked. */
export function maskedText(text: string): string {
  const read = text.slice(0, TEXT_CHARS_READ);
  // Half an address is not recognised as one, so a possible half at the end is left out.
  const whole = text.length > TEXT_CHARS_READ ? read.replace(HALF, "") : read;
  const masked = whole.replace(RECIPIENTS, maskedRecipient);
  const isCut = whole.length < text.length || masked.length > TEXT_CHARS_MAX;
  return isCut ? `${masked.slice(0, TEXT_CHARS_MAX)}…` : masked;
}
