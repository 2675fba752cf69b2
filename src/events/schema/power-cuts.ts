import type { ClickHouse } from "../clickhouse.ts";
import { FAILED_PAYLOADS, sealedTarget } from "../failed-payloads.ts";
import { selectSettings } from "../statement-settings.ts";
import { alterTables } from "./alter-tables.ts";
import type { EventStoreTarget } from "./table.ts";

const LOOK_TIMEOUT_MS = 60_000;

/**
 * A merge is not synced by default, and the parts that it replaces are removed minutes later, after a restart at once: a power cut
 * would take rows that were stored long ago.
 */
export const SYNCED_MERGES = "min_rows_to_fsync_after_merge = 1";
/**
 * For sums, whose inserts are not synced. A power cut leaves some seconds of them as empty files, one part per second and
 * table; with more than a hundred such parts the engine would refuse to open the table and accept no event. Broken parts that
 * are not empty still stop it, from a gigabyte on.
 */
const LOST_PARTS = `max_suspicious_broken_parts = 1000000, ${SYNCED_MERGES}`;

const SYNCED = ["events", "jobs", "events_by_type", "refused_rows"] as const;
const SUMS = ["events_hourly", "events_daily", "events_by_minute"] as const;

/**
 * Returns the server's uptime in ms, a lower bound of its machine's time with power. Infinite for a cluster, whose tokens are
 * in Keeper, which syncs them. Rejects with `UnavailableError`.
 */
export async function serverUpMs(clickhouse: ClickHouse, target: EventStoreTarget): Promise<number> {
  if (target.cluster !== null) return Number.POSITIVE_INFINITY;
  const [row] = await clickhouse.rows(`SELECT uptime() SETTINGS ${selectSettings(target, LOOK_TIMEOUT_MS)}`);
  return Number(row?.[0]) * 1000;
}

/**
 * Applies the settings that protect existing tables against a power cut. Rejects as `alterTables` does, and can be repeated.
 */
export async function settleForPowerCuts(clickhouse: ClickHouse, target: EventStoreTarget): Promise<void> {
  const having = (settings: string, of: EventStoreTarget, table: string) => ({
    of,
    table,
    change: `MODIFY SETTING ${settings}`,
    isIn: (engine: string) => settings.split(", ").every((setting) => `${engine},`.includes(`${setting},`)),
  });
  await alterTables(clickhouse, [
    ...SYNCED.map((table) => having(SYNCED_MERGES, target, table)),
    ...SUMS.map((table) => having(LOST_PARTS, target, table)),
    having(SYNCED_MERGES, sealedTarget(target), FAILED_PAYLOADS.name),
  ]);
}
