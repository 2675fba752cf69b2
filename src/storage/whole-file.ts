import { open, rename, rm } from "node:fs/promises";

/** The suffix of a file that is still being written. */
export const UNFINISHED = ".unfinished";

/** Returns a unique name for a draft of the file. */
export function nameDraft(path: string): string {
  return `${path}.${crypto.randomUUID()}${UNFINISHED}`;
}

/**
 * Writes a file that gets its name only once it is completely on disk. The name itself is on disk once its folder is
 * synced. Other processes may write the same file meanwhile: each has a draft of its own, and the last one counts.
 */
export async function writeWholeFile(path: string, bytes: Uint8Array): Promise<void> {
  const draft = nameDraft(path);
  try {
    const file = await open(draft, "w", 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}
