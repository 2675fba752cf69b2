import { join } from "node:path";
import type { Telemetry } from "../domain/telemetry.ts";
import { countQueuedJobs, prepareRestoredQueue, type QueuedDecision } from "../engine/queue/restored-queue.ts";
import { ClickHouse, connectClickHouse } from "../events/clickhouse.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { startClickHouseChild } from "../storage/clickhouse/clickhouse-child.ts";
import { migrate } from "../storage/postgres/migrate.ts";
import { openPglite } from "../storage/postgres/pglite.ts";
import { startRedisChild } from "../storage/redis/redis-child.ts";
import { tenants as tenantsTable } from "../storage/tables.ts";

const READ_MS = 60_000;

/** A restored data folder, whose engines all opened it. */
export interface RestoredFolder {
  readonly tenants: number;
  readonly events: number;
  /** Of all tenants. */
  readonly queuedJobs: number;
  /** Must run before a start uses the folder. */
  prepare(cutMs: number, queued: QueuedDecision): Promise<void>;
  close(): Promise<void>;
}

/** Opens the engines on a data folder that no process uses. Rejects if one of them does not open, or is of a later version. */
export async function openRestoredFolder(folder: string, telemetry: Telemetry): Promise<RestoredFolder> {
  const { tenants } = await readRegistry(folder);
  const { events, lastEventId } = await readEvents(folder, telemetry);
  const redis = await startRedisChild({ folder: join(folder, "redis"), telemetry, clock: systemClock });
  const queue = { address: redis.address, clock: systemClock, telemetry };
  try {
    return {
      tenants,
      events,
      queuedJobs: await countQueuedJobs(queue),
      prepare: (cutMs, queued) => prepareRestoredQueue(queue, { cutMs, queued, lastEventId }),
      close: () => redis.stop(),
    };
  } catch (error) {
    await redis.stop();
    throw error;
  }
}

async function readRegistry(folder: string): Promise<{ readonly tenants: number }> {
  const { db, close } = await openPglite(join(folder, "postgres"));
  try {
    // Refuses the schema of a later version.
    await migrate(db);
    return { tenants: await db.$count(tenantsTable) };
  } finally {
    await close();
  }
}

async function readEvents(
  folder: string,
  telemetry: Telemetry,
): Promise<{ readonly events: number; readonly lastEventId: number }> {
  const options = { folder: join(folder, "clickhouse"), analysed: null, telemetry, clock: systemClock };
  const child = await startClickHouseChild(options);
  const { reader, close } = connectClickHouse(child.address);
  try {
    const clickhouse = new ClickHouse({ client: reader, clock: systemClock, timeoutMs: READ_MS });
    const databases = await clickhouse.rows(
      "SELECT database FROM system.tables WHERE name = 'events' AND database != 'system'",
    );
    let [events, lastEventId] = [0, 0];
    for (const [database] of databases) {
      const [row] = await clickhouse.rows(`SELECT count(), max(event_id) FROM ${String(database)}.events`);
      events += Number(row?.[0] ?? 0);
      lastEventId = Math.max(lastEventId, Number(row?.[1] ?? 0));
    }
    return { events, lastEventId };
  } finally {
    await close();
    await child.stop();
  }
}
