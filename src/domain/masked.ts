/** The most characters of a provider's text in a log line. */
const TEXT_CHARS_MAX = 300;
/** With an address that begins before the end of those. */
const TEXT_CHARS_READ = 2 * TEXT_CHARS_MAX;

/** A recipient as a log may show it: `a***@example.com`, `+34***89`. */
export function maskedRecipient(recipient: string): string {
  const at = recipient.lastIndexOf("@");
  if (at > 0) return `${recipient.slice(0, 1)}***${recipient.slice(at)}`;
  return recipient.length < 8 ? "***" : `${recipient.slice(0, 3)}***${recipient.slice(-2)}`;
}

/** Addresses and numbers that servers repeat in their replies. */
const RECIPIENTS = /[^\s<>()[\]"',;:]{1,64}@[\w.-]{1,255}|\+?\d{9,15}/g;

/** A provider's reply as a log may show it: shortened, with the recipients in it masked. */
export function maskedText(text: string): string {
  // First masked: half an address is not seen to be one.
  const masked = text.slice(0, TEXT_CHARS_READ).replace(RECIPIENTS, maskedRecipient);
  return masked.length > TEXT_CHARS_MAX ? `${masked.slice(0, TEXT_CHARS_MAX)}…` : masked;
}
