import { CHANNELS } from "../app/channels.ts";
import { hasEmbeddedStore, openDatabase, openEventStore } from "../app/stores.ts";
import type { Config } from "../config/config.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import { RedisInspection } from "../engine/queue/redis-inspection.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import { processTelemetry } from "./command-line.ts";

const REDIS_MS = 10_000;

/**
 * Brings both databases to the current schema and the queue to the current format. Safe to repeat. Databases reached by URL may
 * be in use meanwhile. The queue may not be if its format changes: no process of the previous release may run then.
 */
export async function migrate(config: Config): Promise<number> {
  const lock = hasEmbeddedStore(config) ? FolderLock.acquire(config.home) : null;
  try {
    await (await openDatabase(config, "migrate")).close();
    console.log("PostgreSQL has the current schema.");
    const telemetry = processTelemetry(config);
    await (await openEventStore({ config, channels: CHANNELS, clock: systemClock, telemetry }, "migrate")).close();
    console.log("ClickHouse has the current schema.");
    if (config.redis !== null) {
      await migrateQueue(config.redis, telemetry);
      console.log("The queue has the current format.");
    }
  } finally {
    lock?.release();
  }
  return 0;
}

async function migrateQueue(address: RedisAddress, telemetry: Telemetry): Promise<void> {
  const inspection = await RedisInspection.open({ address, clock: systemClock, telemetry, withinMs: REDIS_MS });
  try {
    await inspection.meta.openFormat("migrate");
  } finally {
    await inspection.close();
  }
}
