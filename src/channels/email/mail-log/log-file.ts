import { type FileHandle, open } from "node:fs/promises";
import { beginsWith, HEAD_BYTES_MAX, headOf, type LogHead, type LogPlace } from "./log-place.ts";

/** Lines, without their breaks, and the place behind the last of them. */
export interface LogLines {
  readonly lines: readonly string[];
  readonly place: LogPlace;
}

/**
 * One log file, read from a place on, line by line. It stays open under whatever name it gets.
 *
 * R1. A line is given out when its line break is there, and once. R2. What is longer than `LINE_BYTES_MAX` is skipped up
 * to its line break, so memory is bounded. R3. Bytes that are no UTF-8 become replacement characters, and harm one line.
 */
export class LogFile {
  private readonly buffer = Buffer.alloc(CHUNK_BYTES);
  /** The beginning of a line whose end was not there yet. */
  private rest: Buffer = Buffer.alloc(0);
  private isSkipping = false;
  /** Bytes that have been read. `rest` is behind the place. */
  private readTo: number;

  private constructor(
    private readonly file: FileHandle,
    readonly inode: string,
    private head: LogHead,
    private offset: number,
  ) {
    this.readTo = offset;
  }

  /** Rejects where there is no such file, or it cannot be read. */
  static async open(path: string, offset: number): Promise<LogFile> {
    const file = await open(path, "r");
    try {
      const { ino } = await file.stat({ bigint: true });
      return new LogFile(file, ino.toString(), await headOf(file, HEAD_BYTES_MAX), offset);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get place(): LogPlace {
    return { inode: this.inode, offset: this.offset, head: this.head };
  }

  /** Whole lines out of the next piece of the file, perhaps none; null at its end. */
  async read(): Promise<LogLines | null> {
    const { bytesRead } = await this.file.read(this.buffer, 0, CHUNK_BYTES, this.readTo);
    if (bytesRead === 0) return null;
    this.readTo += bytesRead;
    if (this.head.bytes < HEAD_BYTES_MAX) this.head = await headOf(this.file, HEAD_BYTES_MAX);
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

  /** What stands behind the last line break of a file that nobody writes to any more. */
  takeRest(): LogLines | null {
    if (this.rest.length === 0 || this.isSkipping) return null;
    const lines = [this.rest.toString("utf8")];
    this.rest = Buffer.alloc(0);
    this.offset = this.readTo;
    return { lines, place: this.place };
  }

  /** Whether what was read is not in the file any more: it was cut off, and perhaps has grown again since. */
  async isTruncated(): Promise<boolean> {
    const { size } = await this.file.stat();
    return size < this.readTo || !(await beginsWith(this.file, this.head));
  }

  close(): Promise<void> {
    return this.file.close();
  }
}

const CHUNK_BYTES = 64 * 1024;
/** Postfix cuts its lines at a small part of this. */
const LINE_BYTES_MAX = 64 * 1024;
const LINE_BREAK = 0x0a;
