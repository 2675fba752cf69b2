import { createHash, timingSafeEqual } from "node:crypto";

/** A secret that requests carry as `Authorization: Bearer` (RFC 6750, 2.1). */
export class BearerToken {
  private readonly expected: Buffer;

  constructor(token: string) {
    this.expected = secretDigest(token);
  }

  /** Compares in constant time. Null: the request carries no token. */
  fits(authorization: string | null): boolean | null {
    const given = readBearerToken(authorization);
    return given === null ? null : timingSafeEqual(secretDigest(given), this.expected);
  }
}

/** Returns the token that a request carries, or null. */
export function readBearerToken(authorization: string | null): string | null {
  return /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? null;
}

/** Digests have a fixed length, as `timingSafeEqual` requires, and hide the secret's length. */
export function secretDigest(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}
