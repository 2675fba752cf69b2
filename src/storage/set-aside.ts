import { link, readFile, rename, rm, stat } from "node:fs/promises";
import { hasCode } from "../domain/has-code.ts";

/** The suffix of a file that is checked before it is removed. */
export const ASIDE = ".aside";

/**
 * Removes the file unless it was written after `storedMs` (its time of modification, unix ms). No system call removes a
 * file only if it is the one that was judged, and another may take its name at any moment: so it is moved aside first,
 * checked, and put back if it is newer. One process at a time may do so in a folder; `readStored` finds a file also
 * while it is aside, and the next start puts it back (`putBack`).
 */
export async function removeUnlessNewer(path: string, storedMs: number): Promise<void> {
  const aside = path + ASIDE;
  try {
    await rename(path, aside);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    throw error;
  }
  const { mtimeMs } = await stat(aside);
  await (mtimeMs > storedMs ? putBack(aside) : rm(aside, { force: true }));
}

/** Gives a file that is aside its name again, unless a newer one has it. */
export async function putBack(aside: string): Promise<void> {
  await link(aside, aside.slice(0, -ASIDE.length)).catch((error: unknown) => {
    if (!hasCode(error, "EEXIST")) throw error;
  });
  await rm(aside, { force: true });
}

/** Returns a file's bytes, also if it is aside at the moment; null: the file does not exist. */
export function readStored(path: string): Promise<Uint8Array | null> {
  return lookAtStored(path, (name) => readFile(name));
}

/** Returns the result of `look` for the name that the file has at the moment; null: the file does not exist. */
export async function lookAtStored<T>(path: string, look: (name: string) => Promise<T>): Promise<T | null> {
  // The last lookup is for a file that was put back between the first two.
  for (const name of [path, path + ASIDE, path]) {
    try {
      return await look(name);
    } catch (error) {
      if (!hasCode(error, "ENOENT")) throw error;
    }
  }
  return null;
}

/** Returns when the file was written (unix ms); null: it does not exist. */
export async function writtenMs(path: string): Promise<number | null> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    throw error;
  }
}
