import { open, readdir } from "node:fs/promises";
import { join } from "node:path";

/** Resolves once the file's contents are on disk; for a folder, the names in it. */
export async function onDisk(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Resolves once all of these paths are on disk. */
export async function allOnDisk(paths: readonly string[]): Promise<void> {
  for (let at = 0; at < paths.length; at += 16) await Promise.all(paths.slice(at, at + 16).map(onDisk));
}

/** Resolves once the folder and everything below it are on disk. */
export async function treeOnDisk(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const found = entries.filter((entry) => entry.isFile() || entry.isDirectory());
  await allOnDisk([folder, ...found.map(({ parentPath, name }) => join(parentPath, name))]);
}
