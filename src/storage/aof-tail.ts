import { constants, copyFile, open, readFile } from "node:fs/promises";
import { join } from "node:path";

export interface CutTail {
  readonly file: string;
  readonly bytes: number;
  readonly backup: string;
}

const CHUNK_BYTES = 64 * 1024;

/**
 * Cuts the zero bytes at the end of the append-only file that Redis was writing, after keeping a copy of it. Null when
 * there are none.
 *
 * A file system can enlarge a file before it writes the data: after a power loss the tail reads as zeros, and Redis,
 * which accepts a command cut short, refuses them. A whole command ends in CR LF, so nothing acknowledged can be among
 * them. Whatever else is wrong is left as it is.
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
    // On a file system that can share blocks the copy costs nothing.
    await copyFile(file, backup, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    await handle.truncate(kept);
    await handle.sync();
    return { file, bytes: size - kept, backup };
  } finally {
    await handle.close();
  }
}

/** The file that the manifest names last among the increments (`file <name> seq <n> type i`), or null. */
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
