import { timingSafeEqual } from "node:crypto";
import { secretDigest } from "../../../http/bearer-token.ts";

/** The provider's spelling only: a message has exactly one valid signature header. */
const SIGNATURE = /^sha256=([0-9a-f]{64})$/;

/**
 * Authenticates calls from the chat provider with the secrets agreed with it, in constant time. While a secret is being
 * rotated there are several, and any of them is accepted.
 */
export class WebhookGate {
  private readonly digests: readonly Buffer[];

  constructor(private readonly secrets: readonly string[]) {
    this.digests = secrets.map(secretDigest);
  }

  /** Whether the text is one of the secrets. */
  knows(text: string | null): boolean {
    if (text === null) return false;
    const given = secretDigest(text);
    // Compares every secret, even after a match.
    return this.digests.filter((known) => timingSafeEqual(given, known)).length > 0;
  }

  /** Whether a header has the form of a signature: `sha256=` and 64 hexadecimal digits, in lower case. */
  isSignature(header: string | null): header is string {
    return header !== null && SIGNATURE.test(header);
  }

  /** Whether the header is the HMAC-SHA256 (RFC 2104) of exactly these bytes under one of the secrets. */
  signed(body: Uint8Array, header: string): boolean {
    const given = Buffer.from(SIGNATURE.exec(header)?.[1] ?? "", "hex");
    const fitting = this.secrets.filter((secret) => {
      const expected = new Bun.CryptoHasher("sha256", secret).update(body).digest();
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    return fitting.length > 0;
  }
}
