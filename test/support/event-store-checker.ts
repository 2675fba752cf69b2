import { expect } from "bun:test";
import type { StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import type { ClickHouse } from "../../src/events/clickhouse.ts";
import { SPARSE_TYPES } from "../../src/events/schema/rollups.ts";

/**
 * Expects that no event is stored twice, and that the tables which ClickHouse derives from the events agree with them.
 */
export async function expectBalance(clickhouse: Pick<ClickHouse, "rows">, database: string): Promise<void> {
  const rows = (sql: string) => clickhouse.rows(sql);
  const twice = `SELECT tenant_id, event_id FROM ${database}.events GROUP BY ALL HAVING count() > 1`;
  expect(await rows(twice)).toEqual([]);
  const spans = [
    ["hour", "toStartOfHour"],
    ["day", "toDate"],
  ] as const;
  for (const [span, of] of spans) {
    const sums = `SELECT tenant_id, toString(${span}), channel, event_type, sum(events) FROM ${database}.events_${span === "day" ? "daily" : "hourly"} GROUP BY ALL ORDER BY ALL`;
    const counted = `SELECT tenant_id, toString(${of}(toDateTime(created_at, 'UTC'))) AS t, channel, event_type, count() FROM ${database}.events GROUP BY ALL ORDER BY ALL`;
    expect(await rows(sums)).toEqual(await rows(counted));
  }
  const types = SPARSE_TYPES.map((type) => `'${type}'`).join(", ");
  const sparse = (table: string) =>
    rows(`SELECT tenant_id, event_id, job_id, channel, event_type, result FROM ${database}.${table}
WHERE event_type IN (${types}) ORDER BY tenant_id, event_id`);
  expect(await sparse("events_by_type")).toEqual(await sparse("events"));
}

/** Tables and views with their columns, as text in which the database's own name does not occur. */
export async function readSchema(clickhouse: Pick<ClickHouse, "rows">, database: string): Promise<string> {
  const columns = await clickhouse.rows(
    `SELECT database, table, name, type, default_kind, default_expression, compression_codec FROM system.columns
WHERE database IN ('${database}', '${database}_sealed') ORDER BY ALL`,
  );
  const engines = await clickhouse.rows(
    `SELECT database, name, engine_full, as_select FROM system.tables
WHERE database IN ('${database}', '${database}_sealed') ORDER BY database, name`,
  );
  return JSON.stringify([columns, engines], null, 1).replaceAll(new RegExp(`\\b${database}(?=[._"])`, "g"), "it");
}

/** Expects that each row that ends a job is stored once, and that derived tables agree with the events. */
export async function expectStoredOnce(
  clickhouse: Pick<ClickHouse, "rows">,
  database: string,
  rows: readonly StoredEventRow[],
): Promise<void> {
  const wanted = rows.map(({ tenantId, eventId }) => [tenantId, eventId]);
  const among = `tenant_id IN (${rows.map(({ tenantId }) => `'${tenantId}'`).join(", ")})`;
  const [first, last] = [rows[0]?.eventId, rows.at(-1)?.eventId];
  for (const [table, id] of [
    ["events", "event_id"],
    ["jobs", "version"],
  ] as const) {
    const stored = await clickhouse.rows(
      `SELECT tenant_id, ${id} FROM ${database}.${table} WHERE ${among} AND ${id} >= ${first} AND ${id} <= ${last} ORDER BY ${id}`,
    );
    expect([table, stored.map(([tenantId, at]) => [tenantId, Number(at)])]).toEqual([table, wanted]);
  }
  await expectBalance(clickhouse, database);
}
