import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";

/** How far a log has been read. Inodes are reused, so a file is identified by its inode and its first bytes. */
export interface LogPlace {
  /** Decimal digits. */
  readonly inode: string;
  /** Bytes up to and including the last line taken. */
  readonly offset: number;
  /** The first bytes of the file, at most `HEAD_BYTES_MAX`, as they were when it was last read. */
  readonly head: LogHead;
}

export interface LogHead {
  readonly bytes: number;
  /** SHA-256, hexadecimal. */
  readonly digest: string;
}

/** Enough for a time, a process and a queue id: no two logs begin with the same bytes. */
export const HEAD_BYTES_MAX = 256;

/** Reads the first `bytes` bytes of the file, or fewer if it is shorter. */
export async function readHead(file: FileHandle, bytes: number): Promise<LogHead> {
  const buffer = Buffer.alloc(bytes);
  const { bytesRead } = bytes === 0 ? { bytesRead: 0 } : await file.read(buffer, 0, bytes, 0);
  const digest = createHash("sha256").update(buffer.subarray(0, bytesRead)).digest("hex");
  return { bytes: bytesRead, digest };
}

export async function beginsWith(file: FileHandle, head: LogHead): Promise<boolean> {
  const found = await readHead(file, head.bytes);
  return found.bytes === head.bytes && found.digest === head.digest;
}
