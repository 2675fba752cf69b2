import type { Readable } from "node:stream";
import nodemailer, { type SendMailOptions } from "nodemailer";
import { withLiteralNames } from "./header-words.ts";

/** A message that is ready to go over the wire, more than once where it has to. */
export interface CompiledMail {
  getEnvelope(): { from: string | false; to: string[] };
  /** A new stream each time. */
  createReadStream(): Readable;
}

/** Hands every message back as it would be sent: composed, and signed while it is read. */
const compiler = withLiteralNames(
  nodemailer.createTransport<CompiledMail>({
    name: "compiled",
    version: "1",
    send: (mail, done) => done(null, mail.message),
  }),
);

/** Composes a message (MIME, DKIM) without sending it. */
export function compileMail(message: SendMailOptions): Promise<CompiledMail> {
  return compiler.sendMail(message);
}
