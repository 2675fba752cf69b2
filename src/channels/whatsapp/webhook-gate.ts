import { timingSafeEqual } from "node:crypto";
import { secretDigest } from "../../http/secret-digest.ts";

/** As the provider writes it: one message has one signature, in one spelling. */
const SIGNATURE = /^sha256=([0-9a-f]{64})$/;

/**
 * Knows what the chat provider says by the secrets that were agreed with it, in a time that tells nothing about them. While
 * a secret is rotated there are several, and any of them will do.
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
    // Every one is compared, whichever fits.
    return this.digests.filter((known) => timingSafeEqual(given, known)).length > 0;
  }

  /** Whether a header has the form of a signature: `sha256=` and 64 hexadecimal digits, in lower case. */
  isSignature(header: string | null): header is string {
    return header !== null && SIGNATURE.test(header);
  }

  /** Whether the header is the HMAC-SHA256 (RFC 2104) of these very bytes under one of the secrets. */
  signed(body: Uint8Array, header: string): boolean {
    const given = Buffer.from(SIGNATURE.exec(header)?.[1] ?? "", "hex");
    const fitting = this.secrets.filter((secret) => {
      const expected = new Bun.CryptoHasher("sha256", secret).update(body).digest();
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    return fitting.length > 0;
  }
}
