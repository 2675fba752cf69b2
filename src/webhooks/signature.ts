import { createHmac } from "node:crypto";
import type { Random } from "../domain/random.ts";

/*
 * Signatures as Standard Webhooks 1.0 has them (https://github.com/standard-webhooks/standard-webhooks):
 * `v1,` and the base64 of HMAC-SHA256 over `<id>.<timestamp>.<body>`.
 */

const PREFIX = "whsec_";
const SECRET_BYTES = 32;

/** `whsec_` and 32 random bytes in base64. */
export function newSecret(random: Random): string {
  return PREFIX + Buffer.from(random.fill(new Uint8Array(SECRET_BYTES))).toString("base64");
}

export interface SignedCall {
  readonly messageId: string;
  readonly json: string;
  /** Unix ms of the call. */
  readonly atMs: number;
  /** The current secret comes first; each of them signs. */
  readonly secrets: readonly string[];
}

/** The headers by which a receiver knows the message and its sender. */
export function signedHeaders({ messageId, json, atMs, secrets }: SignedCall): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(atMs / 1000));
  const signed = `${messageId}.${timestamp}.${json}`;
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), "base64");
    return `v1,${createHmac("sha256", key).update(signed, "utf8").digest("base64")}`;
  });
  return {
    "webhook-id": messageId,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(" "),
  };
}
