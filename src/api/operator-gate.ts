import { createHash, timingSafeEqual } from "node:crypto";

/** Compares bearer tokens (RFC 6750, 2.1) with the operator's, in a time that tells nothing about it. */
export class OperatorGate {
  private readonly expected: Buffer;

  constructor(operatorToken: string) {
    this.expected = digest(operatorToken);
  }

  admits(authorization: string | null): boolean {
    const token = /^bearer +(\S+) *$/i.exec(authorization ?? "")?.[1];
    return token !== undefined && timingSafeEqual(digest(token), this.expected);
  }
}

/** Digests are of one length, which `timingSafeEqual` asks for, and hide how long the token is. */
function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
