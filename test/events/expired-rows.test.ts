import { afterAll, beforeAll, expect, test } from "bun:test";
import { firstEventIdAt } from "../../src/domain/event.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { applyRetention, eventsKeptFromMs } from "../../src/events/retention.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startChdb, type TestEventStore } from "../support/chdb-event-store.ts";
import { eventually } from "../support/eventually.ts";
import { DAY_MS } from "../support/recent-days.ts";

const RETENTION = { eventsMonths: 2, jobsDays: 7 };
const SUCCESS = { status: "success", attempts: 1, result: {} } as const;
let chdb: Awaited<ReturnType<typeof startChdb>>;
let store: TestEventStore;
let writer: ClickHouseEventWriter;

beforeAll(async () => {
  chdb = await startChdb();
  store = await chdb.eventStore("late", "process");
  await applyRetention(store.writing, store.target, RETENTION);
  writer = new ClickHouseEventWriter(store.writing, store.target, systemClock, RETENTION);
});
afterAll(() => chdb.stop());

/** Three events that happened so many days ago, one of them in the table of rarer events too. */
function rowsOf(tenantId: string, daysAgo: number) {
  const endedMs = Date.now() - daysAgo * DAY_MS;
  return (["sent", "bounced", "sent"] as const).map((type, n) =>
    storedEventRow(firstEventIdAt(endedMs + n), { tenantId, type, finished: SUCCESS }),
  );
}

const count = async (table: string, tenantId: string) =>
  Number((await store.reading.rows(`SELECT count() FROM late.${table} WHERE tenant_id = '${tenantId}'`))[0]?.[0]);

/** The engine drops what has expired in the background: usually before an insert is answered, sometimes later. */
const expectLeft = (table: string, tenantId: string, left: number) =>
  eventually(`${left} rows of ${table} are left`, async () => {
    await store.writing.command(`OPTIMIZE TABLE late.${table} FINAL`);
    return (await count(table, tenantId)) === left;
  });

test("a batch that comes after an outage longer than jobs are kept is recorded, and its recorder goes on", async () => {
  const rows = rowsOf("jobs", RETENTION.jobsDays + 1);
  expect(await writer.write("jobs", rows, "again")).toEqual({ wereThere: false, setAside: 0 });
  expect(await count("events", "jobs")).toBe(3);
  await expectLeft("jobs", "jobs", 0);
  expect(await writer.write("jobs", rows, "again")).toEqual({ wereThere: true, setAside: 0 });
});

test("a batch, or a part of one, that comes after an outage longer than events are kept holds up no recorder", async () => {
  const expired = rowsOf("events", 70);
  for (const _ of [1, 2]) {
    expect(await writer.write("events", expired, "again")).toEqual({ wereThere: false, setAside: 0 });
    await expectLeft("events", "events", 0);
  }
  const mixed = [...rowsOf("both", 70), ...rowsOf("both", 1)];
  for (const wereThere of [false, true]) {
    expect(await writer.write("both", mixed, "again")).toEqual({ wereThere, setAside: 0 });
  }
  await expectLeft("events", "both", 3);
  const [[sum] = []] = await store.reading.rows("SELECT sum(events) FROM late.events_hourly WHERE tenant_id = 'both'");
  expect(Number(sum)).toBe(6);
});

test.each([
  ["2026-03-31T12:00:00Z", 1],
  ["2026-03-01T00:00:00Z", 1],
  ["2026-02-28T23:59:59Z", 3],
  ["2028-02-29T12:00:00Z", 13],
  ["2026-05-30T12:00:00Z", 2],
])("at %s, no event that the engine would drop counts as kept for %d months", async (now, months) => {
  const nowMs = Date.parse(now);
  const fromMs = eventsKeptFromMs(nowMs, months);
  const [[first, former] = []] = await store.reading.rows(`SELECT
    toUnixTimestamp(toDateTime(${fromMs / 1_000}, 'UTC') + INTERVAL ${months} MONTH),
    toUnixTimestamp(toDateTime(${(fromMs - 7 * DAY_MS) / 1_000}, 'UTC') + INTERVAL ${months} MONTH)`);
  expect(Number(first) * 1_000).toBeGreaterThan(nowMs);
  expect(Number(former) * 1_000).toBeLessThanOrEqual(nowMs);
});
