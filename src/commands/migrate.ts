import type { Config } from "../config.ts";
import { FolderLock } from "../embedded/folder-lock.ts";
import { hasEmbeddedStore, openDatabase, openLedger } from "../house/stores.ts";
import { systemClock } from "../runtime/system-clock.ts";

/** Brings both databases to the current schema. Safe to repeat; servers by URL may be in use meanwhile. */
export async function migrate(config: Config): Promise<number> {
  const lock = hasEmbeddedStore(config) ? FolderLock.acquire(config.home) : null;
  try {
    await (await openDatabase(config, "migrate")).close();
    console.log("PostgreSQL has the current schema.");
    await (await openLedger(config, systemClock, "migrate")).close();
    console.log("ClickHouse has the current schema.");
  } finally {
    lock?.release();
  }
  return 0;
}
