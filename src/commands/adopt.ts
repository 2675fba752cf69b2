import { adoptStores } from "../app/adopt-stores.ts";
import { hasEmbeddedStore } from "../app/stores.ts";
import type { Config } from "../config/config.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import { processTelemetry } from "./process-telemetry.ts";

/**
 * `waybill adopt`, to be run after a move: from now on the queue in Redis belongs to the registry, the event store and the
 * master key of this configuration.
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
