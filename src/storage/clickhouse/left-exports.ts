import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** Release 1.0 wrote Parquet files into folders of its processes, and a crash could leave one there. */
export async function removeExports(home: string): Promise<void> {
  const names = await readdir(home);
  for (const name of names.filter((each) => /^export(-|$)/.test(each)))
    await rm(join(home, name), { recursive: true, force: true });
}
