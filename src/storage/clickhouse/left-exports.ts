import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * Removes Parquet files of release 1.0, which wrote them into folders of its processes, where a crash could leave one.
 */
export async function removeExports(home: string): Promise<void> {
  const names = await readdir(home);
  for (const name of names.filter((each) => /^export(-|$)/.test(each)))
    await rm(join(home, name), { recursive: true, force: true });
}
