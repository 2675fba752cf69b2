import { adoptStores } from "../app/adopt-stores.ts";
import { hasEmbeddedStore } from "../app/stores.ts";
import type { Config } from "../config/config.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import { processTelemetry } from "./process-telemetry.ts";

/**
 * `waybill adopt`: after a move. The queue in Redis belongs to the registry, the event store and the master key of this
 * configuration from now on.
 */
export async function adopt(config: Config): Promise<number> {
  const lock = hasEmbeddedStore(config) ? FolderLock.acquire(config.home) : null;
  try {
    for (const line of await adoptStores(config, processTelemetry(config))) console.log(line);
  } finally {
    lock?.release();
  }
  return 0;
}
