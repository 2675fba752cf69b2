import { eventTimeMs, firstEventIdAt } from "../domain/event.ts";
import type { StoredEventRow } from "../domain/event-store.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { EVENT_COLUMNS, eventValues } from "./event-rows.ts";
import { eventLimits } from "./limits.ts";
import { SPARSE_TYPES } from "./rollups.ts";
import { insertSettings, selectSettings } from "./statement-settings.ts";
import { eventKey, idRange, tenantPieces } from "./stored-rows.ts";
import type { EventStoreTarget } from "./table.ts";

/** A row that is missing from a table derived from `events`, in the order of its columns. */
export interface Gap {
  readonly table: "events_by_type" | "events_hourly" | "events_daily";
  readonly values: readonly (string | number | null)[];
}

const COLUMNS = {
  events_by_type: EVENT_COLUMNS.join(", "),
  events_hourly: "tenant_id, hour, channel, event_type, events",
  events_daily: "tenant_id, day, channel, event_type, events",
} as const;

const SUMS = [
  { table: "events_hourly", span: "hour", msLong: 3_600_000, of: "toStartOfHour" },
  { table: "events_daily", span: "day", msLong: 86_400_000, of: "toDate" },
] as const;

/**
 * Finds rows of `events` that are missing from the derived tables. An insert cut off after `events` leaves such gaps; repeating
 * it closes them while its token is remembered, and these rows close them later.
 *
 * Sums are compared with the events themselves, for the tenants, hours and days of the given rows. A tenant's events are
 * written one batch after the other, so nothing is added between the two reads, unless a batch has several owners, one of which
 * has moved on. A gap seen in that case differs at the next look or is gone, and only a gap that stays the same for long is
 * filled. Sums larger than their events are left alone: events expire or are deleted, sums stay.
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

/** Inserted under a token of the batch, so that two processes that find the same gap close it once. */
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
  const types = [...new Set(sparse.map(({ type }) => `'${type}'`))].join(", ");
  const found = new Set<string>();
  for (const tenants of tenantPieces(sparse)) {
    const stored = await clickhouse.rows(
      `SELECT tenant_id, event_id FROM ${target.database}.events_by_type
WHERE ${tenants} AND event_type IN (${types}) AND ${idRange(sparse)} SETTINGS ${selectSettings(target, eventLimits.eventStoreReadTimeoutMs)}`,
    );
    for (const [tenantId, eventId] of stored) found.add(`${String(tenantId)}:${String(eventId)}`);
  }
  return sparse
    .filter((row) => !found.has(eventKey(row)))
    .map((row) => ({ table: "events_by_type", values: eventValues(row) }));
}

async function sumGaps(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  { table, span, msLong, of, rows }: (typeof SUMS)[number] & { readonly rows: readonly StoredEventRow[] },
): Promise<readonly Gap[]> {
  const spanOf = (eventId: number) => Math.floor(eventTimeMs(eventId) / msLong);
  const ids = rows.map(({ eventId }) => eventId);
  const [first, last] = [spanOf(Math.min(...ids)), spanOf(Math.max(...ids))];
  const settings = selectSettings(target, eventLimits.eventStoreReadTimeoutMs);
  const time = "toDateTime(intDiv(event_id, 4096000) + 1735689600, 'UTC')";
  const [from, to] = [firstEventIdAt(first * msLong), firstEventIdAt((last + 1) * msLong)];
  const concerned = new Set(rows.map((row) => `${row.tenantId} ${spanOf(row.eventId)} ${row.channel} ${row.type}`));
  const counted = new Map<string, number>();
  const summed = new Map<string, number>();
  for (const tenants of tenantPieces(rows)) {
    const keys = `tenant_id, toUnixTimestamp(toDateTime(${span}, 'UTC')), toString(channel), toString(event_type)`;
    const events = await clickhouse.rows(
      `SELECT ${keys}, sum(events) FROM (
  SELECT tenant_id, ${of}(${time}) AS ${span}, channel, event_type, count() AS events FROM ${target.database}.events
  WHERE ${tenants} AND event_id >= ${from} AND event_id < ${to} GROUP BY tenant_id, ${span}, channel, event_type
) GROUP BY ALL SETTINGS ${settings}`,
    );
    const bounds = [first, last].map((at) => `${of}(toDateTime(${(at * msLong) / 1000}, 'UTC'))`);
    const sums = await clickhouse.rows(
      `SELECT ${keys}, sum(events) FROM ${target.database}.${table}
WHERE ${tenants} AND ${span} >= ${bounds[0]} AND ${span} <= ${bounds[1]} GROUP BY ALL SETTINGS ${settings}`,
    );
    const keyOf = ([tenantId, seconds, channel, type]: readonly unknown[]) =>
      [tenantId, (Number(seconds) * 1000) / msLong, channel, type].map(String).join(" ");
    for (const row of events) counted.set(keyOf(row), Number(row[4]));
    for (const row of sums) summed.set(keyOf(row), Number(row[4]));
  }
  const gaps: Gap[] = [];
  for (const key of concerned) {
    const missing = (counted.get(key) ?? 0) - (summed.get(key) ?? 0);
    const [tenantId = "", at = "", channel = "", type = ""] = key.split(" ");
    const begins = new Date(Number(at) * msLong).toISOString();
    const name = span === "day" ? begins.slice(0, 10) : begins.slice(0, 19).replace("T", " ");
    if (missing > 0) gaps.push({ table, values: [tenantId, name, channel, type, missing] });
  }
  return gaps;
}
