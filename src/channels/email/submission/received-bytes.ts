/** Collects a message that comes in pieces of any size: thousands of small ones take no more memory than their bytes. */
export class ReceivedBytes {
  private bytes = Buffer.alloc(0);
  private used = 0;

  get length(): number {
    return this.used;
  }

  add(piece: Uint8Array): void {
    const needed = this.used + piece.length;
    if (needed > this.bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2, SMALLEST_BYTES));
      this.bytes.copy(larger, 0, 0, this.used);
      this.bytes = larger;
    }
    this.bytes.set(piece, this.used);
    this.used = needed;
  }

  all(): Uint8Array {
    return this.bytes.subarray(0, this.used);
  }
}

const SMALLEST_BYTES = 16 * 1024;
