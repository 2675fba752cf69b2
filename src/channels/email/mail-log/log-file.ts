import { type FileHandle, open } from "node:fs/promises";
import { beginsWith, HEAD_BYTES_MAX, type LogHead, type LogPlace, readHead } from "./log-place.ts";

/** Lines without their line breaks, and the position after the last of them. */
export interface LogLines {
  readonly lines: readonly string[];
  readonly place: LogPlace;
}

/**
 * Reads one log file line by line from a given position. It stays open when it is renamed.
 *
 * R1. Each line is returned once, after its line break has been written.
 * R2. A line longer than `LINE_BYTES_MAX` is skipped up to its line break, so memory is bounded.
 * R3. Bytes that are not UTF-8 become replacement characters and affect only one line.
 */
export class LogFile {
  private readonly buffer = Buffer.alloc(CHUNK_BYTES);
  /** The start of a line whose end has not been written yet. */
  private rest: Buffer = Buffer.alloc(0);
  private isSkipping = false;
  /** Bytes read so far, including `rest`. */
  private readTo: number;

  private constructor(
    private readonly file: FileHandle,
    readonly inode: string,
    private head: LogHead,
    private offset: number,
  ) {
    this.readTo = offset;
  }

  /** Rejects if the file does not exist or cannot be read. */
  static async open(path: string, offset: number): Promise<LogFile> {
    const file = await open(path, "r");
    try {
      const { ino } = await file.stat({ bigint: true });
      return new LogFile(file, ino.toString(), await readHead(file, HEAD_BYTES_MAX), offset);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get place(): LogPlace {
    return { inode: this.inode, offset: this.offset, head: this.head };
  }

  /** Returns the complete lines in the next chunk of the file, perhaps none; null at its end. */
  async read(): Promise<LogLines | null> {
    const { bytesRead } = await this.file.read(this.buffer, 0, CHUNK_BYTES, this.readTo);
    if (bytesRead === 0) return null;
    this.readTo += bytesRead;
    if (this.head.bytes < HEAD_BYTES_MAX) this.head = await readHead(this.file, HEAD_BYTES_MAX);
    const data = Buffer.concat([this.rest, this.buffer.subarray(0, bytesRead)]);
    const end = data.lastIndexOf(LINE_BREAK) + 1;
    this.rest = Buffer.from(data.subarray(end));
    this.offset = this.readTo - this.rest.length;
    const lines = end === 0 ? [] : data.toString("utf8", 0, end - 1).split("\n");
    if (this.isSkipping && end > 0) {
      lines.shift();
      this.isSkipping = false;
    }
    if (this.rest.length > LINE_BYTES_MAX) {
      this.rest = Buffer.alloc(0);
      this.isSkipping = true;
    }
    return { lines, place: this.place };
  }

  /** Returns the text after the last line break of a file that is no longer written to. */
  takeRest(): LogLines | null {
    if (this.rest.length === 0 || this.isSkipping) return null;
    const lines = [this.rest.toString("utf8")];
    this.rest = Buffer.alloc(0);
    this.offset = this.readTo;
    return { lines, place: this.place };
  }

  /** Whether the file was truncated after it was read; it may have grown again since. */
  async isTruncated(): Promise<boolean> {
    const { size } = await this.file.stat();
    return size < this.readTo || !(await beginsWith(this.file, this.head));
  }

  close(): Promise<void> {
    return this.file.close();
  }
}

const CHUNK_BYTES = 64 * 1024;
/** Postfix limits its lines to a small part of this. */
const LINE_BYTES_MAX = 64 * 1024;
const LINE_BREAK = 0x0a;
