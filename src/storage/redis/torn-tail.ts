import { createReadStream, createWriteStream } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { appendOnlyNames } from "../backup/parts.ts";
import { onDisk } from "../on-disk.ts";

export interface CutTail {
  readonly file: string;
  readonly bytes: number;
  /**
   * The file that has them now, without the zero bytes at their end; null: there were no others, or the disk has no
   * space for them.
   */
  readonly keptIn: string | null;
}

const CHUNK_BYTES = 256 * 1024;
/** Longer than any line with a length (`*3`, `$17`), and than Redis' own annotations (`#TS:1690000000`). */
const LINE_BYTES_MAX = 1_024;

/**
 * Cuts off the remains of the last write that a crash left at the end of the append-only file: an unfinished command,
 * with the whole transaction that it belongs to, and zero bytes. None of it was acknowledged. The bytes are kept in
 * another file, which has only the latest ones. Returns null, without any change, if the file has no such tail.
 *
 * Redis must not do it (`aof-load-truncated`): if the crash was inside a transaction, it leaves the complete commands
 * before that, with the MULTI that opened it and no EXEC. Later commands then belong to that transaction, so the next
 * start executes the torn half of it, or drops later commands that were acknowledged (Redis 7.0 and 7.4;
 * https://github.com/valkey-io/valkey/pull/4342).
 *
 * The zero bytes: a file system can enlarge a file before it writes the data. After a power loss the tail then reads as zeros.
 */
export async function cutTornTail(redisFolder: string): Promise<CutTail | null> {
  const file = await lastIncrement(join(redisFolder, "appendonlydir"));
  if (file === null) return null;
  const handle = await open(file, "r+");
  try {
    const { size } = await handle.stat();
    const written = await lengthWithoutZeroTail(handle, size);
    const whole = await wholeLength(new AppendOnlyFile(handle, written));
    if (whole === null || whole === size) return null;
    const keptIn = written > whole ? await kept(file, { start: whole, end: written - 1, redisFolder }) : null;
    await handle.truncate(whole);
    await handle.sync();
    return { file, bytes: size - whole, keptIn };
  } finally {
    await handle.close();
  }
}

/** Copies the file from byte `start` to byte `end` and syncs the copy to disk. A full disk must not stop the start. */
async function kept(file: string, { redisFolder, ...part }: { start: number; end: number; redisFolder: string }) {
  const copy = join(redisFolder, "torn-tail.aof");
  try {
    await pipeline(createReadStream(file, part), createWriteStream(copy, { mode: 0o600 }));
    await onDisk(copy);
    return copy;
  } catch {
    return null;
  }
}

/** Returns the last increment that the manifest names, or null. */
async function lastIncrement(folder: string): Promise<string | null> {
  const manifest = await readFile(join(folder, "appendonly.aof.manifest"), "utf8").catch(() => "");
  const name = appendOnlyNames(manifest).findLast((each) => each.endsWith(".incr.aof"));
  return name === undefined ? null : join(folder, name);
}

async function lengthWithoutZeroTail(handle: FileHandle, size: number): Promise<number> {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES);
    await readWhole(handle, chunk.subarray(0, end - start), start);
    const last = chunk.subarray(0, end - start).findLastIndex((byte) => byte !== 0);
    if (last >= 0) return start + last + 1;
    end = start;
  }
  return 0;
}

/** Fills the buffer from this position of the file: bytes that a short read leaves out must not be taken for zeros. */
async function readWhole(handle: FileHandle, into: Buffer, from: number): Promise<void> {
  for (let done = 0; done < into.length; ) {
    const { bytesRead } = await handle.read(into, done, into.length - done, from + done);
    if (bytesRead === 0) throw new Error("the append-only file became shorter while it was read");
    done += bytesRead;
  }
}

/**
 * Returns the end of the last command that is complete and in no unfinished transaction; null: the file is damaged
 * before its end.
 */
async function wholeLength(file: AppendOnlyFile): Promise<number | null> {
  let whole = 0;
  let isOpen = false;
  for (;;) {
    const command = await file.next();
    if (command === "end") return whole;
    if (command === "damage") return null;
    // A former release may have left a transaction that contains the next one: the first EXEC ends both.
    if (command === "MULTI") isOpen = true;
    else if (command === "EXEC") isOpen = false;
    if (!isOpen) whole = file.at;
  }
}

/** The possible forms of a line that the file's end cuts short: a length, an annotation, or a command's name. */
const CUT_SHORT = /^(?:[*$]?\d*|#[^\r\n]*|[A-Za-z]{0,5})\r?$/;

/** Thrown at the end of the file, and at damage. */
class NoCommand extends Error {
  constructor(readonly why: "end" | "damage") {
    super(why);
  }
}

/**
 * Reads commands as Redis writes them (RESP arrays of bulk strings,
 * https://redis.io/docs/latest/develop/reference/protocol-spec/), and its annotations between them (`#TS:…`). Arguments
 * of commands are skipped, so memory does not grow with them.
 */
class AppendOnlyFile {
  /** The end of the last whole command. */
  at = 0;
  private place = 0;
  private readonly chunk = Buffer.alloc(CHUNK_BYTES);
  private chunkAt = 0;
  private chunkBytes = 0;

  constructor(
    private readonly handle: FileHandle,
    private readonly size: number,
  ) {}

  /** Returns the next command; the two that make transactions by name. */
  async next(): Promise<"MULTI" | "EXEC" | "other" | "end" | "damage"> {
    try {
      const name = await this.command();
      this.at = this.place;
      return name;
    } catch (error) {
      if (error instanceof NoCommand) return error.why;
      throw error;
    }
  }

  private async command(): Promise<"MULTI" | "EXEC" | "other"> {
    const line = await this.line();
    if (line.startsWith("#")) return "other";
    const count = numberAfter("*", line);
    let name = "";
    for (let n = 0; n < count; n += 1) {
      const bytes = numberAfter("$", await this.line());
      if (n === 0 && bytes <= "MULTI".length) name = await this.name(bytes);
      else await this.skip(bytes);
    }
    return name === "MULTI" || name === "EXEC" ? name : "other";
  }

  private async name(bytes: number): Promise<string> {
    const name = await this.line();
    if (name.length !== bytes) throw new NoCommand("damage");
    return name.toUpperCase();
  }

  /** Skips this many bytes and the line's end after them. */
  private async skip(bytes: number): Promise<void> {
    this.place += bytes;
    if (this.place >= this.size) throw new NoCommand("end");
    if ((await this.line()) !== "") throw new NoCommand("damage");
  }

  /** Returns the rest of the line, without its end (CR LF). */
  private async line(): Promise<string> {
    if (this.place + LINE_BYTES_MAX > this.chunkAt + this.chunkBytes) await this.load();
    const from = this.place - this.chunkAt;
    const ahead = this.chunk.subarray(from, Math.min(this.chunkBytes, from + LINE_BYTES_MAX));
    const end = ahead.indexOf("\r\n");
    if (end === -1) {
      const isCutShort = this.place + ahead.length === this.size && CUT_SHORT.test(ahead.toString("latin1"));
      throw new NoCommand(isCutShort ? "end" : "damage");
    }
    this.place += end + 2;
    return ahead.toString("latin1", 0, end);
  }

  private async load(): Promise<void> {
    if (this.chunkAt + this.chunkBytes === this.size && this.place >= this.chunkAt) return;
    this.chunkAt = this.place;
    this.chunkBytes = Math.min(CHUNK_BYTES, this.size - this.place);
    await readWhole(this.handle, this.chunk.subarray(0, this.chunkBytes), this.place);
  }
}

function numberAfter(sign: string, line: string): number {
  if (!line.startsWith(sign) || !/^\d{1,15}$/.test(line.slice(1))) throw new NoCommand("damage");
  return Number(line.slice(1));
}
