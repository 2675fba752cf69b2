import { createHash } from "node:crypto";

/** Digests have a fixed length, as `timingSafeEqual` requires, and hide the secret's length. */
export function secretDigest(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
