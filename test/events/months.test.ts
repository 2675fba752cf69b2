import { afterAll, beforeAll, expect, test } from "bun:test";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import { PURGED } from "../../src/domain/tenants/steering.ts";
import { eventIdAt, storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";

let engine: Awaited<ReturnType<typeof startEngine>>;
let eventStore: TestEventStore;

beforeAll(async () => {
  engine = await startEngine();
  eventStore = await engine.eventStore("months");
}, 90_000);
afterAll(async () => {
  await engine.stop();
});

const DAY_MS = 86_400_000;

test("sums by month are those of the asked tenants alone, each event in the UTC month of its own time", async () => {
  const rows = Array.from({ length: 120 }, (_, day) =>
    ["ada", "bea", "bob"].map((tenantId, at) => storedEventRow(eventIdAt(day * DAY_MS + at), { tenantId })),
  ).flat();
  await eventStore.writer.write("t1", rows);
  await eventStore.writer.write("t1", rows);
  const expected = await eventStore.reading.rows(
    `SELECT tenant_id, formatDateTime(created_at, '%Y-%m') AS month, count() FROM ${eventStore.target.database}.events
WHERE tenant_id IN ('ada', 'bob') GROUP BY ALL ORDER BY ALL`,
  );
  const found = await eventStore.reader.months({ tenantIds: ["bob", "ada"], from: "2020-01", to: "2040-12" });
  const sums = found
    .toSorted((a, b) => `${a.tenantId} ${a.month}`.localeCompare(`${b.tenantId} ${b.month}`))
    .map(({ tenantId, month, events }) => [tenantId, month, events]);
  expect<unknown>(sums).toEqual(expected.map((row) => [...row]));
  expect(sums.length).toBeGreaterThan(6);
  const [first] = found.map(({ month }) => month).sort();
  const one = await eventStore.reader.months({ tenantIds: ["ada"], from: first ?? "", to: first ?? "" });
  expect(one.map(({ tenantId, month }) => [tenantId, month])).toEqual([["ada", first ?? ""]]);
  expect(await eventStore.reader.months({ tenantIds: [], from: "2020-01", to: "2040-12" })).toEqual([]);
});

test("sums by minute are those of all tenants, each event once, whatever minute a batch came in", async () => {
  const watched = await engine.eventStore("minutes");
  const MINUTE_MS = 60_000;
  const fromMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 30 * MINUTE_MS;
  const at = (minute: number, n: number) => firstEventIdAt(fromMs + minute * MINUTE_MS) + n;
  const rows = [
    storedEventRow(at(-1, 0), { tenantId: "ada", type: "sent" }),
    storedEventRow(at(0, 0), { tenantId: "ada", type: "sent" }),
    storedEventRow(at(0, 1), { tenantId: "bea", type: "sent" }),
    storedEventRow(at(0, 2), { tenantId: "bea", type: "bounced", channel: "email" }),
    storedEventRow(at(7, 0), { tenantId: "bob", type: "sent", channel: "wallet" }),
    storedEventRow(at(8, 0), { tenantId: "bob", type: "failed", channel: "email", result: { error: "no such user" } }),
    // An operator's act is no failure to watch for.
    storedEventRow(at(9, 0), { tenantId: "bob", type: "failed", channel: "email", result: { error: PURGED } }),
  ];
  for (let round = 0; round < 2; round += 1) await watched.writer.write("minutes", rows);
  const found = await watched.reader.minutes(fromMs);
  const told = found.map(({ minuteMs, ...rest }) => ({ minute: (minuteMs - fromMs) / MINUTE_MS, ...rest }));
  expect(told.toSorted((a, b) => a.minute - b.minute || a.events - b.events)).toEqual([
    { minute: 0, channel: "email", type: "bounced", events: 1 },
    { minute: 0, channel: "email", type: "sent", events: 2 },
    { minute: 7, channel: "wallet", type: "sent", events: 1 },
    { minute: 8, channel: "email", type: "failed", events: 1 },
  ]);
  expect(await watched.reader.sumsSince(fromMs - MINUTE_MS)).toEqual(
    new Map([
      ["bounced", 1],
      ["failed", 1],
      ["sent", 4],
    ]),
  );
});
