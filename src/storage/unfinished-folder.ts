import { mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { onDisk } from "./on-disk.ts";

/** In a store's folder from its first moment until its first start has made all of it. */
const MARK = "unfinished";
/** Made by file systems in the folder that they are mounted at. */
const OF_THE_DISK = "lost+found";

/**
 * Makes a store's folder, or empties it if its first start did not come to an end: on a full disk, engines leave files that they
 * cannot read later. Nothing has been accepted by then. Resolves with how to declare the store whole; a folder that was whole, or
 * that an earlier release made, stays as it is.
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
    // A power loss that brought the mark back would have the next start remove what was stored since.
    await onDisk(folder);
  };
}
