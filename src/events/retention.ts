import { assert } from "../domain/errors.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { selectSettings } from "./statement-settings.ts";
import { checked, type EventStoreTarget, localName, onCluster } from "./table.ts";

/** How long the event store keeps what. The sums by hour and day stay: no person is in them. */
export interface Retention {
  /** Of an event, counted from its own time. */
  readonly eventsMonths: number;
  /** Of a finished job, counted from when it ended. */
  readonly jobsDays: number;
}

/** What the tables are created with. */
export const RETENTION_DEFAULT: Retention = { eventsMonths: 13, jobsDays: 90 };

export const eventsTtl = (months: number) =>
  `toDateTime(intDiv(event_id, 4096000) + 1735689600, 'UTC') + INTERVAL ${months} MONTH`;
/** What the table of jobs is created with; `applyRetention` then counts from another time. */
export const jobsTtl = (days: number) => `toDateTime(UUIDv7ToDateTime(job_id, 'UTC')) + INTERVAL ${days} DAY`;
/** Not by the job's id: it was made by the clock of one machine, and a job that seems to be years old would go at once. */
const JOB_ENDED = "toDateTime(intDiv(version, 4096000) + 1735689600, 'UTC')";

const LOOK_TIMEOUT_MS = 60_000;

/**
 * Brings the tables' time to live to what is configured. A table that has it already is left alone: an ALTER would rewrite
 * what is known of every part. Rows go by whole parts, a month at a time, once the last of a part is too old.
 */
export async function applyRetention(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  retention: Retention,
): Promise<void> {
  const { eventsMonths, jobsDays } = retention;
  const { database, cluster } = checked(target);
  for (const span of [eventsMonths, jobsDays]) assert(Number.isInteger(span) && span > 0, "a time to live is whole");
  const wanted = [
    { name: "events", ttl: eventsTtl(eventsMonths), shown: `toIntervalMonth(${eventsMonths})` },
    { name: "events_by_type", ttl: eventsTtl(eventsMonths), shown: `toIntervalMonth(${eventsMonths})` },
    {
      name: "jobs",
      ttl: `${JOB_ENDED} + INTERVAL ${jobsDays} DAY`,
      shown: `${JOB_ENDED} + toIntervalDay(${jobsDays})`,
    },
  ];
  const rows = await clickhouse.rows(
    `SELECT name, engine_full FROM system.tables WHERE database = '${database}' SETTINGS ${selectSettings(target, LOOK_TIMEOUT_MS)}`,
  );
  const engines = new Map(rows.map(([name, engine]) => [name, String(engine)]));
  for (const { name, ttl, shown } of wanted) {
    const local = localName(target, name);
    if (engines.get(local)?.includes(shown)) continue;
    await clickhouse.command(`ALTER TABLE ${database}.${local}${onCluster(cluster)} MODIFY TTL ${ttl}`);
  }
}
