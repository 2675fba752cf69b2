import { constants, copyFile, open, readFile } from "node:fs/promises";
import { join } from "node:path";

export interface CutTail {
  readonly file: string;
  readonly bytes: number;
  readonly backup: string;
}

const CHUNK_BYTES = 64 * 1024;

/**
 * Cuts the zero bytes from the end of the append-only file that Redis was writing, after copying the file. Null if there are
 * none.
 *
 * A file system can enlarge a file before it writes the data. After a power loss the tail then reads as zeros, and Redis, which
 * accepts a truncated command, refuses them. A complete command ends in CR LF, so the zeros contain nothing that was
 * acknowledged. Any other damage is left as it is.
 */
export async function cutZeroTail(redisFolder: string, nowMs: number): Promise<CutTail | null> {
  const file = await lastIncrement(join(redisFolder, "appendonlydir"));
  if (file === null) return null;
  const handle = await open(file, "r+");
  try {
    const { size } = await handle.stat();
    const kept = await lengthWithoutZeroTail(handle, size);
    if (kept === size) return null;
    const backup = `${file}.${nowMs}.backup`;
    // A file system that can share blocks makes this copy for free.
    await copyFile(file, backup, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    await handle.truncate(kept);
    await handle.sync();
    return { file, bytes: size - kept, backup };
  } finally {
    await handle.close();
  }
}

/** The last increment that the manifest names (`file <name> seq <n> type i`), or null. */
async function lastIncrement(folder: string): Promise<string | null> {
  const manifest = await readFile(join(folder, "appendonly.aof.manifest"), "utf8").catch(() => "");
  const increments = Array.from(manifest.matchAll(/^file (appendonly\.aof\.\d+\.incr\.aof) seq \d+ type i\b/gm));
  const name = increments.at(-1)?.[1];
  return name === undefined ? null : join(folder, name);
}

async function lengthWithoutZeroTail(handle: Awaited<ReturnType<typeof open>>, size: number): Promise<number> {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const { bytesRead } = await handle.read(chunk, 0, end - start, start);
    const last = chunk.subarray(0, bytesRead).findLastIndex((byte) => byte !== 0);
    if (last >= 0) return start + last + 1;
    end = start;
  }
  return 0;
}
