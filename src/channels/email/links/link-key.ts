import { type Cipheriv, createCipheriv, hash } from "node:crypto";

const HASH_BLOCK_BYTES = 64;
const HASH_BYTES = 32;
const CIPHER_BLOCK_BYTES = 16;
/** Longer than the content of any signed link. */
const CONTENT_BYTES_MAX = 8_192;

/**
 * A pair of keys, prepared once: HMAC-SHA-256 and AES-256 in counter mode. node:crypto would allocate new objects for
 * each token, which costs more to create and collect than the computation itself.
 */
export class LinkKey {
  /** Prefixes of the two hashes of an HMAC (RFC 2104, 2), with space for the rest of the input. */
  private readonly inner: Buffer;
  private readonly outer: Buffer;
  private readonly counters = Buffer.alloc(CONTENT_BYTES_MAX);
  /** AES on single blocks, which carries no state from one block to the next. */
  private readonly blocks: Cipheriv;

  constructor(signing: Uint8Array, hiding: Uint8Array) {
    this.inner = padded(signing, 0x36, CONTENT_BYTES_MAX);
    this.outer = padded(signing, 0x5c, HASH_BYTES);
    this.blocks = createCipheriv("aes-256-ecb", hiding, null).setAutoPadding(false);
  }

  /** Computes HMAC-SHA-256 of the content. Throws `RangeError` if the content is longer than any link's. */
  hmac(content: Uint8Array): Buffer {
    this.inner.set(content, HASH_BLOCK_BYTES);
    const within = hash("sha256", this.inner.subarray(0, HASH_BLOCK_BYTES + content.length), "buffer");
    this.outer.set(within, HASH_BLOCK_BYTES);
    return hash("sha256", this.outer, "buffer");
  }

  /**
   * Encrypts or decrypts `bytes` from `start` on, in place, with a counter that begins at `from` (NIST SP 800-38A,
   * 6.5).
   */
  hide(bytes: Uint8Array, start: number, from: Uint8Array): void {
    const { counters } = this;
    const end = Math.ceil((bytes.length - start) / CIPHER_BLOCK_BYTES) * CIPHER_BLOCK_BYTES;
    for (let at = 0; at < end; at += CIPHER_BLOCK_BYTES) {
      if (at === 0) counters.set(from, 0);
      else counters.copyWithin(at, at - CIPHER_BLOCK_BYTES, at);
      if (at > 0) increment(counters, at + CIPHER_BLOCK_BYTES - 1);
    }
    const stream = this.blocks.update(counters.subarray(0, end));
    for (let at = start; at < bytes.length; at += 1) bytes[at] = (bytes[at] ?? 0) ^ (stream[at - start] ?? 0);
  }
}

function padded(key: Uint8Array, pad: number, room: number): Buffer {
  const bytes = Buffer.alloc(HASH_BLOCK_BYTES + room);
  for (let at = 0; at < HASH_BLOCK_BYTES; at += 1) bytes[at] = pad ^ (key[at] ?? 0);
  return bytes;
}

/** Increments the counter block whose last byte is at `last`. */
function increment(counters: Uint8Array, last: number): void {
  for (let at = last; at > last - CIPHER_BLOCK_BYTES; at -= 1) {
    const byte = ((counters[at] ?? 0) + 1) & 0xff;
    counters[at] = byte;
    if (byte !== 0) return;
  }
}
