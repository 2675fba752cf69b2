import { createHash } from "node:crypto";

/** Digests are of one length, which `timingSafeEqual` asks for, and hide how long the secret is. */
export function secretDigest(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
