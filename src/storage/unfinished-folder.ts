import { mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { onDisk } from "./on-disk.ts";

/** Present in a store's folder from its creation until its first start is complete. */
const MARK = "unfinished";
/** Created by file systems in their mount point. */
const OF_THE_DISK = "lost+found";

/**
 * Creates a store's folder, or empties it if its first start was not completed: on a full disk, engines leave files
 * that they cannot read later. No job has been accepted by then. Resolves to a function that declares the store
 * complete; a folder that was complete, or that an earlier release made, stays as it is.
 */
export async function beginFolder(folder: string): Promise<() => Promise<void>> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const names = (await readdir(folder)).filter((name) => name !== OF_THE_DISK);
  if (names.length > 0 && !names.includes(MARK)) return async () => {};
  for (const name of names) if (name !== MARK) await rm(join(folder, name), { recursive: true, force: true });
  const mark = await open(join(folder, MARK), "w", 0o600);
  await mark.close();
  return async () => {
    await rm(join(folder, MARK));
    // If a power loss restored the mark, the next start would remove all data stored since.
    await onDisk(folder);
  };
}
