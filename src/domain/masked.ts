/** The most characters of a provider's text in a log line. */
const TEXT_CHARS_MAX = 300;

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
  const short = text.length > TEXT_CHARS_MAX ? `${text.slice(0, TEXT_CHARS_MAX)}…` : text;
  return short.replace(RECIPIENTS, maskedRecipient);
}
