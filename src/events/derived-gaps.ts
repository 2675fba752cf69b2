import { eventTimeMs, firstEventIdAt, isByMachine } from "../domain/jobs/event.ts";
import type { StoredEventRow } from "../domain/jobs/event-store.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { EVENT_COLUMNS, eventValues } from "./event-rows.ts";
import { eventLimits } from "./limits.ts";
import { SPARSE_TYPES } from "./schema/rollups.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { insertSettings, selectSettings } from "./statement-settings.ts";
import { eventKey, storedEvents, tenantPieces } from "./stored-rows.ts";

/** A row that is missing from a table derived from `events`, in the order of its columns. */
export interface Gap {
  readonly table: "events_by_type" | "events_hourly" | "events_daily";
  readonly values: readonly (string | number | boolean | null)[];
}

const COLUMNS = {
  events_by_type: EVENT_COLUMNS.join(", "),
  events_hourly: "tenant_id, hour, channel, event_type, machine, events",
  events_daily: "tenant_id, day, channel, event_type, machine, events",
} as const;

const SUMS = [
  { table: "events_hourly", span: "hour", msLong: 3_600_000, of: "toStartOfHour" },
  { table: "events_daily", span: "day", msLong: 86_400_000, of: "toDate" },
] as const;
type Sum = (typeof SUMS)[number];

/** An hour or a day, and the rows of it. */
interface OneSpan {
  readonly beginMs: number;
  readonly rows: readonly StoredEventRow[];
}

/**
 * Finds rows of `events` that are missing from the derived tables. An insert cut off after `events` leaves such gaps; repeating
 * it closes them while its token is remembered, and these rows close them later.
 *
 * Sums are compared with the events themselves, for the tenants, hours and days of the given rows. A tenant's events are
 * written one batch after the other, so no event is added between the two reads, unless a batch has several owners, one of
 * which has moved on. A gap seen in that case differs at the next check or is gone, and only a gap that stays the same for long
 * is filled. Sums larger than their events are left alone: events expire or are deleted, sums stay.
 */
export async function derivedGaps(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  rows: readonly StoredEventRow[],
): Promise<readonly Gap[]> {
  if (rows.length === 0) return [];
  const gaps = [...(await byTypeGaps(clickhouse, target, rows))];
  for (const sum of SUMS) gaps.push(...(await sumGaps(clickhouse, target, { ...sum, rows })));
  return gaps;
}

/** Inserts the gaps under a token of the batch, so that two processes that find the same gap close it once. */
export async function insertGaps(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  { token, gaps }: { readonly token: string; readonly gaps: readonly Gap[] },
): Promise<void> {
  for (const table of ["events_by_type", "events_hourly", "events_daily"] as const) {
    const lines = gaps.filter((gap) => gap.table === table).map(({ values }) => `${JSON.stringify(values)}\n`);
    if (lines.length === 0) continue;
    await clickhouse.insert(
      `INSERT INTO ${target.database}.${table} (${COLUMNS[table]}) SETTINGS ${insertSettings(target, `${token}:${table}:gaps`)} FORMAT JSONCompactEachRow`,
      lines.join(""),
    );
  }
}

async function byTypeGaps(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  rows: readonly StoredEventRow[],
): Promise<readonly Gap[]> {
  const sparse = rows.filter(({ type }) => SPARSE_TYPES.includes(type));
  if (sparse.length === 0) return [];
  const found = await storedEvents(clickhouse, target, { table: "events_by_type", rows: sparse });
  return sparse
    .filter((row) => !found.has(eventKey(row)))
    .map((row) => ({ table: "events_by_type", values: eventValues(row) }));
}

/** Checks single hours and days: the ones in between may hold all events of a tenant whose shard is less far behind. */
async function sumGaps(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  { rows, ...sum }: Sum & { readonly rows: readonly StoredEventRow[] },
): Promise<readonly Gap[]> {
  const bySpan = Map.groupBy(rows, ({ eventId }) => Math.floor(eventTimeMs(eventId) / sum.msLong));
  const gaps: Gap[] = [];
  for (const [at, ofSpan] of bySpan) {
    gaps.push(...(await spanGaps(clickhouse, target, { ...sum, beginMs: at * sum.msLong, rows: ofSpan })));
  }
  return gaps;
}

async function spanGaps(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  { table, span, msLong, of, beginMs, rows }: Sum & OneSpan,
): Promise<readonly Gap[]> {
  const settings = selectSettings(target, eventLimits.eventStoreReadTimeoutMs);
  const [from, to] = [firstEventIdAt(beginMs), firstEventIdAt(beginMs + msLong)];
  const missing = new Map(rows.map((row) => [[row.tenantId, row.channel, row.type, isByMachine(row)].join(" "), 0]));
  const add = (found: readonly (readonly unknown[])[], sign: 1 | -1) => {
    for (const [tenantId, channel, type, machine, events] of found) {
      const key = [tenantId, channel, type, machine].join(" ");
      const known = missing.get(key);
      if (known !== undefined) missing.set(key, known + sign * Number(events));
    }
  };
  const columns = "tenant_id, toString(channel), toString(event_type), toString(machine)";
  for (const tenants of tenantPieces(rows)) {
    const events = await clickhouse.rows(
      `SELECT ${columns}, count() FROM ${target.database}.events
WHERE ${tenants} AND event_id >= ${from} AND event_id < ${to} GROUP BY ALL SETTINGS ${settings}`,
    );
    add(events, 1);
    const sums = await clickhouse.rows(
      `SELECT ${columns}, sum(events) FROM ${target.database}.${table}
WHERE ${tenants} AND ${span} = ${of}(toDateTime(${beginMs / 1000}, 'UTC')) GROUP BY ALL SETTINGS ${settings}`,
    );
    add(sums, -1);
  }
  const begins = new Date(beginMs).toISOString();
  const name = span === "day" ? begins.slice(0, 10) : begins.slice(0, 19).replace("T", " ");
  return Array.from(missing, ([key, events]) => {
    const [tenantId = "", channel = "", type = "", machine = ""] = key.split(" ");
    return { table, values: [tenantId, name, channel, type, machine === "true", events] } as const;
  }).filter(({ values }) => values[5] > 0);
}
