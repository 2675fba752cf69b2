import { MessageParser } from "../../../../src/channels/email/submission/parse-message.ts";

export const [KIB, MIB] = [1024, 1024 * 1024];
export const FROM = "From: no-reply@platform.test\r\n";

/** Each character is a byte. */
export const parse = (message: string) => new MessageParser().parse("acme", Buffer.from(message, "latin1"));

/** A message of these parts, each with its own headers. */
export function mixed(...parts: readonly string[]): string {
  const bodies = parts.map((part) => `--b\r\n${part}\r\n`).join("");
  return `${FROM}Content-Type: multipart/mixed; boundary=b\r\n\r\n${bodies}--b--\r\n`;
}

/** A part of the type, with its content on one line of base64. */
export const inBase64 = (type: string, content: string) =>
  `Content-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(content, "latin1").toString("base64")}`;
