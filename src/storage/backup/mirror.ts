import { constants, copyFile, lstat, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { unlessMissing } from "./missing.ts";

const AT_A_TIME = 64;

/**
 * Makes `to` equal to the folder `from`, and copies only files that have changed since an earlier call. A file that may have
 * been written while the earlier call read it counts as changed.
 */
export async function mirror(from: string, to: string, sinceMs: number | null): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  const [now, before] = await Promise.all([readdir(from, { withFileTypes: true }), readdir(to)]);
  const gone = new Set(before);
  const files: string[] = [];
  for (const entry of now) {
    gone.delete(entry.name);
    if (entry.isDirectory()) await mirror(join(from, entry.name), join(to, entry.name), sinceMs);
    else if (entry.isFile()) files.push(entry.name);
  }
  for (let at = 0; at < files.length; at += AT_A_TIME) {
    const some = files.slice(at, at + AT_A_TIME);
    await Promise.all(some.map((name) => copyChanged(join(from, name), join(to, name), sinceMs).catch(unlessMissing)));
  }
  await Promise.all(Array.from(gone, (name) => rm(join(to, name), { recursive: true, force: true })));
}

/** File systems note times in steps of some milliseconds, and so may others' clocks be off. */
const DOUBT_MS = 2_000;

async function copyChanged(from: string, to: string, sinceMs: number | null): Promise<void> {
  const copy = sinceMs === null ? null : await lstat(to).catch(() => null);
  if (copy !== null && sinceMs !== null) {
    const { mtimeMs, size } = await lstat(from);
    if (size === copy.size && mtimeMs < sinceMs - DOUBT_MS) return;
  }
  // A file system that can share blocks makes this copy for free.
  await copyFile(from, to, constants.COPYFILE_FICLONE);
}
