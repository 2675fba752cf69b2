import type { ClickHouse } from "./clickhouse.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

export interface EventStoreHealth {
  readonly version: string;
  /** Its clock, in Unix milliseconds. */
  readonly nowMs: number;
  /** Rows of the last seven days that no table took. */
  readonly refusedRows: number;
  /** Free space on the fullest disk. */
  readonly freeBytes: number;
  readonly totalBytes: number;
}

const TIMEOUT_MS = 5_000;

/** The time (unix ms) of the newest event; null: there is none. Rejects with `UnavailableError`. */
export async function newestEventMs(clickhouse: ClickHouse, target: EventStoreTarget): Promise<number | null> {
  const settings = selectSettings(target, TIMEOUT_MS);
  // A sum of each hour is a few bytes.
  const [row] = await clickhouse.rows(
    `SELECT toUnixTimestamp(max(hour)), count() FROM ${target.database}.events_hourly SETTINGS ${settings}`,
  );
  return Number(row?.[1] ?? 0) === 0 ? null : Number(row?.[0]) * 1000;
}

/** Rejects with `UnavailableError`. */
export async function eventStoreHealth(clickhouse: ClickHouse, target: EventStoreTarget): Promise<EventStoreHealth> {
  const settings = selectSettings(target, TIMEOUT_MS);
  const [said] = await clickhouse.rows(`SELECT version(), toUnixTimestamp64Milli(now64(3)) SETTINGS ${settings}`);
  const [refused] = await clickhouse.rows(
    `SELECT count() FROM ${target.database}.refused_rows WHERE at > now() - INTERVAL 7 DAY SETTINGS ${settings}`,
  );
  const [disk] = await clickhouse.rows(
    `SELECT free_space, total_space FROM system.disks ORDER BY free_space LIMIT 1 SETTINGS ${settings}`,
  );
  return {
    version: String(said?.[0]),
    nowMs: Number(said?.[1]),
    refusedRows: Number(refused?.[0]),
    freeBytes: Number(disk?.[0] ?? 0),
    totalBytes: Number(disk?.[1] ?? 0),
  };
}
