import { afterAll, beforeAll, expect, test } from "bun:test";
import { EVENT_TYPES } from "../../src/domain/jobs/event.ts";
import type { MetricRow, MetricsQuery } from "../../src/domain/jobs/event-metrics.ts";
import { ClickHouseEventMetrics } from "../../src/events/clickhouse-event-metrics.ts";
import { derivedGaps, insertGaps } from "../../src/events/derived-gaps.ts";
import { migrateEventStore } from "../../src/events/schema/migrate-event-store.ts";
import { FIRST_CHANNELS } from "../../src/events/schema/table.ts";
import { eventIdAt, NOON_MS, storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";
import { SeededRandom } from "../support/seeded-random.ts";

let engine: Awaited<ReturnType<typeof startEngine>>;
let eventStore: TestEventStore;

beforeAll(async () => {
  engine = await startEngine();
  eventStore = await engine.eventStore("rollups");
}, 90_000);
afterAll(async () => {
  await engine.stop();
});

const HOUR_MS = 3_600_000;

/** A few tenants' events over several days, every type among them. */
function manyRows(seed: number, count: number) {
  const random = new SeededRandom(seed);
  const pick = <T>(from: readonly T[]): T => {
    const one = from[Math.floor(random.next() * from.length)];
    if (one === undefined) throw new Error("there is nothing to pick from");
    return one;
  };
  return Array.from({ length: count }, (_, n) =>
    storedEventRow(eventIdAt(n * (HOUR_MS / 16)), {
      tenantId: pick(["ada", "bob", "cyd"]),
      channel: pick(FIRST_CHANNELS),
      type: pick(EVENT_TYPES),
    }),
  );
}

const db = () => eventStore.target.database;
const sums = (column: string, table: string) =>
  eventStore.reading.rows(
    `SELECT tenant_id, toString(${column}), channel, event_type, sum(events) FROM ${db()}.${table} GROUP BY ALL ORDER BY ALL`,
  );
const counted = (column: string) =>
  eventStore.reading.rows(
    `SELECT tenant_id, toString(${column}(toDateTime(created_at, 'UTC'))) AS t, channel, event_type, count() FROM ${db()}.events GROUP BY ALL ORDER BY ALL`,
  );

test("hours and days add up to the events, however often a batch is repeated", async () => {
  const rows = manyRows(1, 900);
  for (let round = 0; round < 3; round += 1) {
    for (let at = 0; at < rows.length; at += 300) await eventStore.writer.write(`s1:${at}`, rows.slice(at, at + 300));
  }
  expect(await eventStore.reading.rows(`SELECT count() FROM ${db()}.events`)).toEqual([[900]]);
  expect(await sums("hour", "events_hourly")).toEqual(await counted("toStartOfHour"));
  expect(await sums("day", "events_daily")).toEqual(await counted("toDate"));
  const sparse = (table: string) =>
    eventStore.reading.rows(
      `SELECT event_id, job_id, tenant_id, channel, event_type, result FROM ${db()}.${table} WHERE event_type NOT IN ('sent', 'delivered') ORDER BY event_id`,
    );
  expect(await sparse("events_by_type")).toEqual(await sparse("events"));
});

test("every filter returns its events, newest first, from any table", async () => {
  for (const type of [null, ...EVENT_TYPES]) {
    for (const channel of [null, "email", "wallet"] as const) {
      const query = { tenantId: "ada", fromEventId: 0, toEventId: Number.MAX_SAFE_INTEGER, channel, type, limit: 500 };
      const { events } = await eventStore.reader.page(query);
      const filter = `${type === null ? "" : ` AND event_type = '${type}'`} AND channel IN (${channel === null ? "'email', 'whatsapp'" : `'${channel}'`})`;
      const expected = await eventStore.reading.rows(
        `SELECT event_id FROM ${db()}.events WHERE tenant_id = 'ada'${filter} ORDER BY event_id DESC`,
      );
      expect(events.map(({ eventId }) => eventId)).toEqual(expected.map(([eventId]) => Number(eventId)));
    }
  }
}, 90_000);

test("an event has the class of its failure and the provider's time, in the table of rare types, too", async () => {
  const failed = { type: "failed", result: { error: "550 5.7.1 blocked" }, tenantId: "fay" } as const;
  const occurredAtMs = NOON_MS - 4_321;
  const row = storedEventRow(eventIdAt(0), { ...failed, occurredAtMs });
  const sent = storedEventRow(eventIdAt(1), { tenantId: "fay" });
  await eventStore.writer.write("s1:fay", [row, sent]);
  const columns = "event_type, failure_class, toUnixTimestamp64Milli(occurred_at)";
  const of = (table: string) =>
    eventStore.reading.rows(`SELECT ${columns} FROM ${db()}.${table} WHERE tenant_id = 'fay' ORDER BY event_id`);
  expect(await of("events")).toEqual([
    ["failed", "refused", occurredAtMs],
    ["sent", "", null],
  ]);
  const rare = [["failed", "refused", occurredAtMs]];
  expect(await of("events_by_type")).toEqual(rare);
  // A gap is closed together with them.
  await eventStore.writing.command(
    `ALTER TABLE ${db()}.events_by_type DELETE WHERE tenant_id = 'fay' SETTINGS mutations_sync = 2`,
  );
  const gaps = await derivedGaps(eventStore.reading, eventStore.target, [row, sent]);
  await insertGaps(eventStore.writing, eventStore.target, { token: "s1:fay", gaps });
  expect(await of("events_by_type")).toEqual(rare);
});

test("sums that lack events are made up for, each by what is missing, and whole ones are left alone", async () => {
  const rows = ["ida", "jon"].flatMap((tenantId) =>
    Array.from({ length: 5 }, (_, n) => storedEventRow(eventIdAt(n * HOUR_MS), { tenantId })),
  );
  await eventStore.writer.write("s1:ida", rows);
  const sums = (table: string) =>
    eventStore.reading.rows(
      `SELECT tenant_id, sum(events) FROM ${db()}.${table} WHERE tenant_id IN ('ida', 'jon') GROUP BY tenant_id ORDER BY tenant_id`,
    );
  const whole = [
    ["ida", 5],
    ["jon", 5],
  ];
  for (const [table, lost] of [
    ["events_hourly", `hour >= toDateTime(${(NOON_MS + 3 * HOUR_MS) / 1000}, 'UTC')`],
    ["events_daily", "1"],
  ]) {
    expect(await sums(table ?? "")).toEqual(whole);
    await eventStore.writing.command(
      `ALTER TABLE ${db()}.${table} DELETE WHERE tenant_id = 'ida' AND ${lost} SETTINGS mutations_sync = 2`,
    );
  }
  const gaps = await derivedGaps(eventStore.reading, eventStore.target, rows);
  const day = new Date(NOON_MS).toISOString().slice(0, 10);
  expect(gaps).toEqual([
    { table: "events_hourly", values: ["ida", `${day} 15:00:00`, "email", "sent", false, 1] },
    { table: "events_hourly", values: ["ida", `${day} 16:00:00`, "email", "sent", false, 1] },
    { table: "events_daily", values: ["ida", day, "email", "sent", false, 5] },
  ]);
  await insertGaps(eventStore.writing, eventStore.target, { token: "s1:ida", gaps });
  for (const table of ["events_hourly", "events_daily"]) expect(await sums(table)).toEqual(whole);
  expect(await derivedGaps(eventStore.reading, eventStore.target, rows)).toEqual([]);
});

test("an event store of the first schema gets its sums once, when it is migrated", async () => {
  const old = await engine.eventStore("older");
  const { database } = old.target;
  for (const name of ["events_by_type", "events_hourly", "events_daily"]) {
    await old.writing.command(`DROP VIEW ${database}.${name}_mv`);
    await old.writing.command(`DROP TABLE ${database}.${name}`);
  }
  await old.writer.write("s1:old", manyRows(2, 200));
  const total = async () => old.reading.rows(`SELECT sum(events) FROM ${database}.events_daily`);
  for (let round = 0; round < 2; round += 1) {
    await old.writing.command(`TRUNCATE TABLE ${database}.migrations`);
    await migrateEventStore(old.writing, old.target);
    expect(await total()).toEqual([[200]]);
  }
  await old.writer.write("s1:new", manyRows(3, 50));
  expect(await total()).toEqual([[250]]);
}, 90_000);

test("a tenant's metrics are its own, by interval, zone and group, however they are read", async () => {
  const metrics = new ClickHouseEventMetrics(eventStore.reading, eventStore.target);
  const day = new Date(NOON_MS).toISOString().slice(0, 10);
  // 20:30 UTC: the next day in Kolkata and Kyiv, not yet in Berlin.
  const late = eventIdAt(8.5 * HOUR_MS);
  const row = (eventId: number, template: string, tags: readonly string[], recipient: string) => {
    const tagged = tags.map((value) => ({ name: "kind", value }));
    const finished = { status: "success", attempts: 1, result: {}, template, tags: tagged, recipient } as const;
    return storedEventRow(eventId, { tenantId: "gus", finished });
  };
  const first = row(eventIdAt(0), "welcome", ["a", "b"], "ann@example.com");
  const second = row(late, "", [], "bob@example.net");
  await eventStore.writer.write("s1:gus", [
    first,
    second,
    { ...first, type: "delivered", eventId: late + 1, finished: null },
    storedEventRow(late + 2, { tenantId: "other" }),
  ]);
  const asked = {
    tenantId: "gus",
    from: day,
    to: day,
    timezone: "UTC",
    isWholeHours: true,
    interval: null,
    group: null,
    channel: null,
  };
  const of = async (changes: Partial<MetricsQuery>) => {
    const rows = await metrics.metrics({ ...asked, ...changes });
    return typeof rows === "string"
      ? rows
      : rows.map(({ atMs, group, events }) => [atMs, group, events.sent, events.delivered]);
  };
  expect(await of({})).toEqual([[null, null, 2, 1]]);
  expect(await of({ channel: "wallet" })).toEqual([]);
  expect(await of({ group: "channel" })).toEqual([[null, "email", 2, 1]]);
  expect(await of({ interval: "hour" })).toEqual([
    [NOON_MS, null, 1, 0],
    [NOON_MS + 8 * HOUR_MS, null, 1, 1],
  ]);
  expect(await of({ interval: "day", timezone: "Etc/GMT-4" })).toEqual([[NOON_MS - 16 * HOUR_MS, null, 1, 0]]);
  const kolkata = { interval: "day", timezone: "Asia/Kolkata", isWholeHours: false } as const;
  expect(await of(kolkata)).toEqual([[NOON_MS - 17.5 * HOUR_MS, null, 1, 0]]);
  expect(await of({ group: "template" })).toEqual([
    [null, "", 1, 0],
    [null, "welcome", 1, 1],
  ]);
  expect(await of({ group: "tag" })).toEqual([
    [null, "", 1, 0],
    [null, "kind:a", 1, 1],
    [null, "kind:b", 1, 1],
  ]);
  expect(await of({ group: "domain", interval: "month" })).toMatchObject([
    [expect.any(Number), "example.com", 1, 1],
    [expect.any(Number), "example.net", 1, 0],
  ]);
  expect(await of({ from: "0001-01-01", to: "0001-12-31", interval: "week" })).toEqual([]);
  expect(await of({ from: "9999-01-01", to: "9999-12-31", group: "tag" })).toEqual([]);
});

test("opens and clicks by machines are told apart in every sum, and counted as one where they are missing", async () => {
  const tenantId = "kit";
  const day = new Date(NOON_MS).toISOString().slice(0, 10);
  const finished = { status: "success", attempts: 1, result: {}, template: "news" } as const;
  const first = storedEventRow(eventIdAt(0), { tenantId, finished });
  const url = "https://x.test/";
  const followed = [
    ["opened", { machine: true, by: "Apple Mail Privacy Protection" }],
    ["opened", { by: "Gmail" }],
    ["clicked", { url, machine: true }],
    ["clicked", { url: 'https://y.test/","machine":true' }],
    ["clicked", { url: "https://z.test/", machine: true, by: "Barracuda" }],
  ] as const;
  const rows = [
    first,
    ...followed.map(([type, result], at) => ({ ...first, type, result, eventId: eventIdAt(1 + at), finished: null })),
  ];
  await eventStore.writer.write("s1:kit", rows);
  const read = (sql: string) => eventStore.reading.rows(sql);
  const columns = "opened, machine_opened, clicked, machine_clicked";
  const expected = [[1, 1, 1, 2]];
  expect(await read(`SELECT ${columns} FROM ${db()}.delivery_funnel WHERE tenant_id = 'kit'`)).toEqual(expected);
  const range = `tenant = 'kit', from = '${day}', to = '${day}'`;
  // Of jobs: one opened it.
  expect(await read(`SELECT ${columns} FROM ${db()}.template_results(${range})`)).toEqual([[1, 1, 1, 1]]);
  for (const table of ["events", "events_by_type"]) {
    const machines = `SELECT countIf(machine) FROM ${db()}.${table} WHERE tenant_id = 'kit'`;
    expect(await read(machines)).toEqual([[3]]);
  }
  const metrics = new ClickHouseEventMetrics(eventStore.reading, eventStore.target);
  const asked = { tenantId, from: day, to: day, timezone: "UTC", isWholeHours: true, interval: null, channel: null };
  for (const group of [null, "template"] as const) {
    const [row] = await metrics.metrics({ ...asked, group });
    const { opened, machine_opened, clicked, machine_clicked } = (row as MetricRow).events;
    expect([[opened, machine_opened, clicked, machine_clicked]]).toEqual(expected);
  }
  expect(await derivedGaps(eventStore.reading, eventStore.target, rows)).toEqual([]);
  await eventStore.writing.command(
    `ALTER TABLE ${db()}.events_daily DELETE WHERE tenant_id = 'kit' AND machine SETTINGS mutations_sync = 2`,
  );
  const gaps = await derivedGaps(eventStore.reading, eventStore.target, rows);
  expect(gaps.map(({ values }) => values.slice(3))).toEqual([
    ["opened", true, 1],
    ["clicked", true, 2],
  ]);
  await insertGaps(eventStore.writing, eventStore.target, { token: "s1:kit", gaps });
  expect(await read(`SELECT ${columns} FROM ${db()}.delivery_funnel WHERE tenant_id = 'kit'`)).toEqual(expected);
});

test("analysts' views answer from the sums and the events", async () => {
  const day = new Date(NOON_MS).toISOString().slice(0, 10);
  const start = (Date.parse(`${day}T08:00:00Z`) - 1_735_689_600_000) * 4096;
  const at = (seconds: number) => start + seconds * 4_096_000;
  const [a, b] = [storedEventRow(at(0), { tenantId: "eve" }), storedEventRow(at(1), { tenantId: "eve" })];
  await eventStore.writer.write("s1:eve", [
    { ...a, type: "sent" },
    { ...b, type: "sent" },
    { ...a, type: "delivered", eventId: at(3), finished: null },
    { ...b, type: "bounced", eventId: at(5), finished: null },
  ]);
  const rows = (sql: string) => eventStore.reading.rows(sql);
  const columns = "sent, delivered, bounced";
  expect(await rows(`SELECT ${columns} FROM ${db()}.delivery_funnel WHERE tenant_id = 'eve'`)).toEqual([[2, 1, 1]]);
  expect(await rows(`SELECT bounce_rate FROM ${db()}.bounce_rate WHERE tenant_id = 'eve'`)).toEqual([[0.5]]);
  const range = `tenant = 'eve', from = '${day}', to = '${day}'`;
  expect(
    await rows(`SELECT toString(day), jobs, seconds_p50_p90_p99[1] FROM ${db()}.time_to_deliver(${range})`),
  ).toEqual([[day, 1, 3]]);
  expect(await rows(`SELECT template FROM ${db()}.template_results(${range})`)).toEqual([]);
  const finished = { status: "success", attempts: 1, result: {}, template: 'a "good\\" one' } as const;
  const c = { ...storedEventRow(at(7), { tenantId: "eve", finished }), channel: "whatsapp" } as const;
  await eventStore.writer.write("s1:eve-named", [
    { ...c, type: "sent" },
    { ...c, type: "delivered", eventId: at(8), finished: null },
    { ...a, eventId: at(9), type: "opened", finished: { ...finished, template: "welcome" } },
  ]);
  expect(
    await rows(`SELECT template, channel, jobs, sent, delivered, opened FROM ${db()}.template_results(${range})`),
  ).toEqual([
    ['a "good\\" one', "whatsapp", 1, 1, 1, 0],
    ["welcome", "email", 1, 1, 1, 1],
  ]);
});
