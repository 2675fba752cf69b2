import nodemailer, { type SendMailOptions } from "nodemailer";
import { withLiteralNames } from "./header-words.ts";

const composer = withLiteralNames(
  nodemailer.createTransport({ streamTransport: true, buffer: true, newline: "windows" }),
);

/** The message as it would go over the wire (RFC 5322), without being sent. */
export async function rawMessage(message: SendMailOptions): Promise<Uint8Array> {
  const { message: raw } = await composer.sendMail(message);
  if (raw instanceof Uint8Array) return raw;
  throw new Error("a buffered message came as a stream");
}
