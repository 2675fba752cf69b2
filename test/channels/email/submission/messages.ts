import { mimeTree } from "../../../../src/channels/email/submission/mime-tree.ts";
import { buildSendBodies } from "../../../../src/channels/email/submission/send-body.ts";
import { aTenant } from "../../../support/tenants.ts";

export const [KIB, MIB] = [1024, 1024 * 1024];
const SENDER = "no-reply@platform.test";
export const FROM = `From: ${SENDER}\r\n`;

/** Submits a message, each character of which is a byte, and returns the result. */
export const read = async (message: string) =>
  buildSendBodies(aTenant(), mimeTree(Buffer.from(message, "latin1")), SENDER);

/** The members that the API receives. */
export const members = async (message: string): Promise<Readonly<Record<string, unknown>>> =>
  JSON.parse((await read(message)).bodyFor("ada@example.com")) as Readonly<Record<string, unknown>>;

/** The forwarded bytes of a message that is kept as it came; "" if it is not kept. */
export const kept = async (message: string): Promise<string> =>
  Buffer.from((await read(message)).kept?.body ?? []).toString("latin1");

/** A message of these parts, each with its own headers. */
export function mixed(...parts: readonly string[]): string {
  const bodies = parts.map((part) => `--b\r\n${part}\r\n`).join("");
  return `${FROM}Content-Type: multipart/mixed; boundary=b\r\n\r\n${bodies}--b--\r\n`;
}

/** A part of the type, with its content on one line of base64. */
export const inBase64 = (type: string, content: string) =>
  `Content-Type: ${type}\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(content, "latin1").toString("base64")}`;
