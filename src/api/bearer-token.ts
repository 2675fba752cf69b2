import { createHash, timingSafeEqual } from "node:crypto";

/** A secret that requests carry as `Authorization: Bearer` (RFC 6750, 2.1). */
export class BearerToken {
  private readonly expected: Buffer;

  constructor(token: string) {
    this.expected = digest(token);
  }

  /** Compares in a time that tells nothing about the secret. Null: the request carries no token at all. */
  fits(authorization: string | null): boolean | null {
    const given = /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    return given === undefined ? null : timingSafeEqual(digest(given), this.expected);
  }
}

/** Digests are of one length, which `timingSafeEqual` asks for, and hide how long the token is. */
function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
