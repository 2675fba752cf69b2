import { PLAIN_LINE_MAX } from "./body-encoding.ts";

/**
 * The rest of a message's body: lines, and files between them, which are encoded while they are written, so that a message
 * takes hardly more memory than its files.
 */
export class MessageRest {
  constructor(private readonly pieces: readonly (string | Uint8Array)[]) {}

  /** In octets, as written by `chunks`. */
  get bytes(): number {
    let bytes = 0;
    for (const piece of this.pieces)
      bytes += typeof piece === "string" ? Buffer.byteLength(piece) : encodedBytes(piece);
    return bytes;
  }

  /** `lines` is applied to each piece that is no file. */
  *chunks(lines: (text: string) => string = (text) => text): Generator<Buffer> {
    for (const piece of this.pieces) {
      if (typeof piece === "string") {
        yield Buffer.from(lines(piece), "utf8");
        continue;
      }
      for (let at = 0; at < piece.length; at += CHUNK_BYTES) {
        const rows = base64Rows(piece.subarray(at, at + CHUNK_BYTES));
        // The line after the file begins with the line end of its last one.
        yield Buffer.from(at + CHUNK_BYTES < piece.length ? rows : rows.replace(/\r\n$/, ""), "latin1");
      }
    }
  }
}

/** What a line of base64 holds. */
const ROW_BYTES = (PLAIN_LINE_MAX / 4) * 3;
const CHUNK_BYTES = 840 * ROW_BYTES;

function base64Rows(bytes: Uint8Array): string {
  const { buffer, byteOffset, length } = bytes;
  return Buffer.from(buffer, byteOffset, length).toString("base64").replace(/.{76}/g, "$&\r\n");
}

function encodedBytes({ length }: Uint8Array): number {
  const chars = 4 * Math.ceil(length / 3);
  return chars + 2 * Math.max(0, Math.ceil(chars / PLAIN_LINE_MAX) - 1);
}
