import { join } from "node:path";

/** A hash of all inputs of `migrate`, which names results that are created once and kept for later runs. */
export async function schemaHash(): Promise<string> {
  const folder = new URL("../../src/storage/", import.meta.url).pathname;
  // Not one pattern with alternatives: Bun returns no matches where some of them name a folder.
  const migrations = [...new Bun.Glob("migrations/*.sql").scanSync(folder)].toSorted();
  const names = [...migrations, "postgres/migrate.ts", "registry-identity.ts"];
  const hash = new Bun.CryptoHasher("sha256");
  for (const name of names) hash.update(await Bun.file(join(folder, name)).bytes());
  return hash.digest("hex").slice(0, 16);
}
