import { ReceivedBytes } from "./received-bytes.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const [PADDING, OTHER] = [64, 65];
const VALUES = new Uint8Array(256).fill(OTHER);
for (let at = 0; at < ALPHABET.length; at += 1) VALUES[ALPHABET.charCodeAt(at)] = at;
VALUES["=".charCodeAt(0)] = PADDING;

/**
 * Decodes a part's base64 (RFC 2045, 6.8) line by line into one array, however its padding is spread: some programs pad each
 * line. Other characters are skipped, as the RFC asks for.
 */
export class Base64Body {
  private readonly bytes = new ReceivedBytes();
  /** The latest line, decoded. */
  private decoded = new Uint8Array(128);
  /** Bits that are not a byte yet, the latest lowest. */
  private bits = 0;
  private bitCount = 0;

  update(line: Uint8Array): void {
    if (this.decoded.length < line.length) this.decoded = new Uint8Array(line.length);
    const { decoded } = this;
    let used = 0;
    for (let at = 0; at < line.length; at += 1) {
      const value = VALUES[line[at] ?? 0] ?? OTHER;
      // What follows padding begins anew.
      if (value === PADDING) this.bitCount = 0;
      if (value >= PADDING) continue;
      this.bits = ((this.bits << 6) | value) & 0xffff;
      this.bitCount += 6;
      if (this.bitCount < 8) continue;
      this.bitCount -= 8;
      decoded[used] = (this.bits >> this.bitCount) & 0xff;
      used += 1;
    }
    this.bytes.add(decoded.subarray(0, used));
  }

  async finalize(): Promise<Uint8Array> {
    const all = this.bytes.all();
    // Of a small part, no more than it has: a message has thousands of them.
    return all.byteLength * 2 < all.buffer.byteLength ? new Uint8Array(all) : all;
  }
}
