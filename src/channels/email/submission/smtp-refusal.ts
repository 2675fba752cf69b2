/** A reply that refuses a command (RFC 5321, 4.2), with an enhanced status code (RFC 3463) as its first word. */
export class SmtpRefusal extends Error {
  override readonly name = "SmtpRefusal";

  /** The library reads a reply's code from `responseCode`. */
  constructor(
    readonly responseCode: number,
    text: string,
  ) {
    super(replyText(text));
  }

  /** Whether the client may send the same again. */
  get isTemporary(): boolean {
    return this.responseCode < 500;
  }
}

/** A reply line has at most 512 bytes (RFC 5321, 4.5.3.1.5), code and line end included. */
const TEXT_CHARS_MAX = 500;

/** Reduces a text to one line of printable ASCII, which every client can read. */
export function replyText(text: string): string {
  const line = text.replace(/[^\x20-\x7e]+/g, "?");
  return line.length <= TEXT_CHARS_MAX ? line : `${line.slice(0, TEXT_CHARS_MAX - 3)}...`;
}

export function overLimit(): SmtpRefusal {
  return new SmtpRefusal(451, "4.7.1 too many requests: each recipient counts as one; try again later");
}

export const AWAY = "4.3.0 a part of the service cannot be reached at the moment: try again";
