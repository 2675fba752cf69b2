import type { SendMailOptions, Transporter } from "nodemailer";
import { encodeWord } from "nodemailer/lib/mime-funcs";

/** What nodemailer itself begins a new encoded word after. */
const WORD_CHARS_MAX = 52;

/**
 * A text as a header has it in which a reader would find encoded words (RFC 2047) that nobody encoded: encoded itself, so
 * that it arrives as it was written. nodemailer lets such a text pass, as one that its caller has encoded.
 */
export function literalText(text: string): string {
  return text.includes("=?") ? encodeWord(text, "Q", WORD_CHARS_MAX) : text;
}

/**
 * Has the transporter do the same with the names of senders and recipients. It quotes them, and inside quotes nothing
 * should be decoded (RFC 2047, 5); many readers do.
 */
export function withLiteralNames<T>(transporter: Transporter<T, SendMailOptions>): Transporter<T, SendMailOptions> {
  return transporter.use("stream", ({ message }, done) => {
    if (encodesHeaders(message)) {
      const encode = message.encodeHeaderValue.bind(message);
      message.encodeHeaderValue = (key, value) => unquoted(encode(key, value));
    }
    done();
  });
}

const QUOTED_NAME = /^"((?:[^"\\]|\\.)*=\?(?:[^"\\]|\\.)*)" (<[^<>]*>)$/;

function unquoted(value: string): string {
  const [, name, address] = QUOTED_NAME.exec(value) ?? [];
  return name === undefined ? value : `${literalText(name.replace(/\\(.)/g, "$1"))} ${address}`;
}

/** A node of nodemailer's, whose types do not name the method. */
interface HeaderEncoder {
  encodeHeaderValue(key: string, value: unknown): string;
}

function encodesHeaders(node: object): node is HeaderEncoder {
  return "encodeHeaderValue" in node && typeof node.encodeHeaderValue === "function";
}
