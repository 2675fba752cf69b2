import { PLAIN_LINE_MAX } from "./body-encoding.ts";

/** The rest of a message's body. */
export interface MessageRest {
  /** In octets, as written by `chunks`. */
  readonly bytes: number;
  /** Yields the body in chunks. `lines` is applied to each piece that is no file. */
  chunks(lines?: (text: string) => string): Generator<Buffer>;
}

/** Lines, and files between them, which are encoded while they are written, so that a message takes hardly more memory than its files. */
export class LinesAndFiles implements MessageRest {
  constructor(private readonly pieces: readonly (string | Uint8Array)[]) {}

  get bytes(): number {
    let bytes = 0;
    for (const piece of this.pieces)
      bytes += typeof piece === "string" ? Buffer.byteLength(piece) : encodedBytes(piece);
    return bytes;
  }

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

/** Whole lines that are written unchanged. */
export class KeptLines implements MessageRest {
  constructor(private readonly body: Buffer) {}

  get bytes(): number {
    return this.body.length;
  }

  *chunks(lines: (text: string) => string = (text) => text): Generator<Buffer> {
    const { body } = this;
    for (let at = 0; at < body.length; ) {
      const most = at + CHUNK_BYTES;
      const lineEnd = most >= body.length ? body.length : body.lastIndexOf("\n", most) + 1;
      const end = lineEnd > at ? lineEnd : most;
      // A line end goes before the piece, as before each line, and stays out of it.
      yield Buffer.from(lines(`\n${body.toString("latin1", at, end)}`).slice(1), "latin1");
      at = end;
    }
  }

  /** Returns the lines without the empty ones at the end, which a signature does not cover (RFC 6376, 3.4.4). */
  trimmed(): KeptLines {
    let end = this.body.length;
    while (end > 0 && BLANKS.has(this.body[end - 1] ?? 0)) end -= 1;
    const lineEnd = this.body.indexOf("\n", end);
    return new KeptLines(end === 0 ? this.body.subarray(0, 0) : this.body.subarray(0, lineEnd + 1));
  }
}

const BLANKS: ReadonlySet<number> = new Set(Buffer.from(" \t\r\n"));
/** The bytes in a line of base64. */
const ROW_BYTES = (PLAIN_LINE_MAX / 4) * 3;
const CHUNK_BYTES = 840 * ROW_BYTES;

/** Encodes bytes in lines; the last one has no line end unless it is full. */
export function base64Rows(bytes: Uint8Array): string {
  const { buffer, byteOffset, length } = bytes;
  return Buffer.from(buffer, byteOffset, length).toString("base64").replace(/.{76}/g, "$&\r\n");
}

function encodedBytes({ length }: Uint8Array): number {
  const chars = 4 * Math.ceil(length / 3);
  return chars + 2 * Math.max(0, Math.ceil(chars / PLAIN_LINE_MAX) - 1);
}
