import { assert } from "../domain/errors.ts";
import { alterTables } from "./alter-tables.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { checked, type EventStoreTarget } from "./table.ts";

/** How long the event store keeps events and jobs. The sums by hour and day stay: they hold no personal data. */
export interface Retention {
  /** For an event, counted from its own time. */
  readonly eventsMonths: number;
  /** For a finished job, counted from its end. */
  readonly jobsDays: number;
}

/**
 * The retention that tables are created with. Released steps of the schema contain it, so it never changes; what holds is
 * the setting (`EVENTS_KEPT_MONTHS`, `JOBS_KEPT_DAYS`), applied at each start of the embedded engine, and to a server by
 * `migrate`.
 */
export const RETENTION_DEFAULT: Retention = { eventsMonths: 13, jobsDays: 90 };

export const eventsTtl = (months: number) =>
  `toDateTime(intDiv(event_id, 4096000) + 1735689600, 'UTC') + INTERVAL ${months} MONTH`;
/**
 * Events from then on (unix ms) are kept for sure. From the end of a month, the engine counts on to the last day of a shorter
 * one: such an event expires up to three days sooner than a date that is counted back.
 */
export function eventsKeptFromMs(nowMs: number, months: number): number {
  const from = new Date(nowMs);
  from.setUTCMonth(from.getUTCMonth() - months);
  return from.getTime() + SHORT_MONTH_MS;
}

/** The TTL that the jobs table is created with; `applyRetention` then counts from another time. */
export const jobsTtl = (days: number) => `toDateTime(UUIDv7ToDateTime(job_id, 'UTC')) + INTERVAL ${days} DAY`;
/** Not taken from the job's id, which was made by one machine's clock: a job that seems years old would expire at once. */
const JOB_ENDED = "toDateTime(intDiv(version, 4096000) + 1735689600, 'UTC')";

const SHORT_MONTH_MS = 3 * 86_400_000;

/**
 * Sets the tables' TTL to the configured retention. A table that already has it is left alone. Rows are removed by whole parts, one
 * month at a time, once a part's last row has expired.
 */
export async function applyRetention(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  retention: Retention,
): Promise<void> {
  const { eventsMonths, jobsDays } = retention;
  checked(target);
  for (const span of [eventsMonths, jobsDays]) assert(Number.isInteger(span) && span > 0, "a time to live is whole");
  const ttl = (table: string, expression: string, shown: string) => ({
    of: target,
    table,
    change: `MODIFY TTL ${expression}`,
    isIn: (engine: string) => engine.includes(shown),
  });
  await alterTables(clickhouse, [
    ttl("events", eventsTtl(eventsMonths), `toIntervalMonth(${eventsMonths})`),
    ttl("events_by_type", eventsTtl(eventsMonths), `toIntervalMonth(${eventsMonths})`),
    ttl("jobs", `${JOB_ENDED} + INTERVAL ${jobsDays} DAY`, `${JOB_ENDED} + toIntervalDay(${jobsDays})`),
  ]);
}
