import { open, readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { hasCode } from "../../../domain/has-code.ts";
import { beginsWith, type LogPlace } from "./log-place.ts";

/** The files to read next, oldest first; the last one is always the log itself. */
export interface Succession {
  readonly files: readonly { readonly path: string; readonly inode: string | null; readonly offset: number }[];
  /** Whether the file that was being read no longer exists, so lines may have been missed. */
  readonly isBroken: boolean;
}

/**
 * Finds the file that contains the position, under the name that rotation gave it, and the files after it: `log.1`,
 * `log-20261121`, `log.20261121-0300`, not compressed, in the same folder. If rotation copied the log and then
 * truncated it, the copy is identified by its first bytes.
 */
export async function findSuccession(path: string, place: LogPlace | null): Promise<Succession> {
  const current = await lookAt(path);
  const log = { path, inode: current?.inode ?? null, offset: 0 };
  if (place === null) return { files: [log], isBroken: false };
  if (current !== null && current.inode === place.inode && (await isThere(current, place))) {
    return { files: [{ ...log, offset: place.offset }], isBroken: false };
  }
  const rotated = await listRotatedFiles(path);
  for (const [i, file] of rotated.entries()) {
    const isSameFile = file.inode === place.inode || place.head.bytes >= DISTINCT_BYTES_MIN;
    if (!isSameFile || !(await isThere(file, place))) continue;
    const first = { path: file.path, inode: file.inode, offset: place.offset };
    const later = rotated.slice(i + 1).map((each) => ({ path: each.path, inode: each.inode, offset: 0 }));
    return { files: [first, ...later, log], isBroken: false };
  }
  return { files: [log], isBroken: place.offset > 0 };
}

interface Seen {
  readonly path: string;
  readonly inode: string;
  readonly size: bigint;
  readonly modifiedNs: bigint;
}

/** With fewer bytes, another log may begin with the same ones. */
const DISTINCT_BYTES_MIN = 64;
const ROTATED_MAX = 100;
const COMPRESSED = /\.(?:gz|bz2|xz|zst|lz4|lzma|zip)$/;

async function listRotatedFiles(path: string): Promise<readonly Seen[]> {
  const name = basename(path);
  const isRotated = (each: string) =>
    (each.startsWith(`${name}.`) || each.startsWith(`${name}-`)) && !COMPRESSED.test(each);
  const names = await readdir(dirname(path)).catch(nothingThere);
  const seen = await Promise.all((names ?? []).filter(isRotated).map((each) => lookAt(join(dirname(path), each))));
  const files = seen.filter((each) => each !== null);
  files.sort((a, b) => (a.modifiedNs < b.modifiedNs ? -1 : 1));
  return files.slice(-ROTATED_MAX);
}

async function lookAt(path: string): Promise<Seen | null> {
  const found = await stat(path, { bigint: true }).catch(nothingThere);
  if (found === null || !found.isFile()) return null;
  return { path, inode: found.ino.toString(), size: found.size, modifiedNs: found.mtimeNs };
}

async function isThere({ path, size }: Seen, { offset, head }: LogPlace): Promise<boolean> {
  if (size < BigInt(offset)) return false;
  const file = await open(path, "r").catch(nothingThere);
  if (file === null) return false;
  try {
    return await beginsWith(file, head);
  } finally {
    await file.close();
  }
}

/** Treats a missing file as absent: if a rotation renamed it in the meantime, the next poll finds it. */
function nothingThere(error: unknown): null {
  if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return null;
  throw error;
}
