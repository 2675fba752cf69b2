import { afterAll, beforeAll, expect, test } from "bun:test";
import { EVENT_EPOCH_MS, firstEventIdAt } from "../../src/domain/jobs/event.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { FAILED_PAYLOADS, failedPayloads } from "../../src/events/failed-payloads.ts";
import { eventStoreIdentity, migrateEventStore } from "../../src/events/schema/migrate-event-store.ts";
import { ExpiredHistory, eventsKeptUntilMs } from "../../src/events/schema/retention.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { DAY_MS } from "../support/recent-days.ts";

const RETENTION = { eventsMonths: 2, jobsDays: 7 };
const SUCCESS = { status: "success", attempts: 1, result: {} } as const;
const THEN_MS = Date.UTC(2026, 0, 10);
let chdb: Awaited<ReturnType<typeof startEngine>>;
let store: TestEventStore;

beforeAll(async () => {
  chdb = await startEngine();
  store = await chdb.eventStore("late");
});
afterAll(() => chdb.stop());

/** Three events of this time, one of them in the table of rarer events too. */
const buildRows = (tenantId: string, atMs: number) =>
  (["sent", "bounced", "sent"] as const).map((type, n) =>
    storedEventRow(firstEventIdAt(atMs + n), { tenantId, type, finished: SUCCESS }),
  );

const count = async (table: string, tenantId: string) =>
  Number((await store.reading.rows(`SELECT count() FROM late.${table} WHERE tenant_id = '${tenantId}'`))[0]?.[0]);

const sweepAt = (nowMs: number) =>
  new ExpiredHistory({
    clickhouse: store,
    target: store.target,
    retention: RETENTION,
    agreedMs: () => Promise.resolve(nowMs),
    clock: systemClock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  }).sweep();

test("the engine's own clock removes nothing; a month leaves once the agreed time says so, and its sums stay", async () => {
  const { writer, writing } = store;
  await writer.write("old", buildRows("old", THEN_MS), "again");
  await writer.write("next", buildRows("next", Date.UTC(2026, 1, 1)), "again");
  for (const table of ["events", "events_by_type", "jobs"]) await writing.command(`OPTIMIZE TABLE late.${table} FINAL`);
  await sweepAt(Date.UTC(2026, 3, 1) - 1);
  expect([await count("events", "old"), await count("events_by_type", "old")]).toEqual([3, 1]);
  await sweepAt(Date.UTC(2026, 3, 1));
  expect([await count("events", "old"), await count("events_by_type", "old")]).toEqual([0, 0]);
  expect([await count("events", "next"), await count("events_by_type", "next")]).toEqual([3, 1]);
  const [[sum] = []] = await store.reading.rows("SELECT sum(events) FROM late.events_hourly WHERE tenant_id = 'old'");
  expect(Number(sum)).toBe(3);
});

test("a job leaves so long after its end, whatever the month of its id", async () => {
  const ended = firstEventIdAt(Date.UTC(2027, 5, 1));
  for (const [tenantId, jobId] of [
    ["behind", "01900000-0000-7000-8000-000000000001"],
    ["ahead", "02500000-0000-7000-8000-000000000001"],
  ] as const) {
    await store.writer.write(tenantId, [storedEventRow(ended, { tenantId, jobId, finished: SUCCESS })]);
  }
  const jobs = async () => [await count("jobs", "behind"), await count("jobs", "ahead")];
  await sweepAt(Date.UTC(2027, 5, 8) - 1);
  expect(await jobs()).toEqual([1, 1]);
  await sweepAt(Date.UTC(2027, 5, 8));
  expect(await jobs()).toEqual([0, 0]);
});

test("contents of failed jobs leave by the day", async () => {
  for (const statement of failedPayloads(store.target)) await store.writing.command(statement);
  for (const day of [1, 2]) {
    const version = firstEventIdAt(Date.UTC(2026, 0, day, 23));
    await store.writing.command(
      `INSERT INTO late_sealed.${FAILED_PAYLOADS.name} (tenant_id, job_id, version) VALUES ('acme', generateUUIDv4(), ${version})`,
    );
  }
  const left = async () => (await store.reading.rows(`SELECT version FROM late_sealed.${FAILED_PAYLOADS.name}`)).length;
  await sweepAt(Date.UTC(2026, 0, 9) - 1);
  expect(await left()).toBe(2);
  await sweepAt(Date.UTC(2026, 0, 9));
  expect(await left()).toBe(1);
});

test("a batch of which a part has left in the meantime holds up no recorder that writes it again", async () => {
  let passedMs = 0;
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + passedMs };
  const writer = new ClickHouseEventWriter(store.writing, store.target, clock);
  const rows = [...buildRows("both", EVENT_EPOCH_MS + DAY_MS), ...buildRows("both", THEN_MS)];
  expect(await writer.write("both", rows, "again")).toEqual({ wereThere: false, setAside: 0 });
  await sweepAt(THEN_MS);
  await expect(writer.write("both", rows, "again")).rejects.toThrow("stored in part");
  passedMs = 60_000;
  expect(await writer.write("both", rows, "again")).toEqual({ wereThere: true, setAside: 0 });
});

test("tables of a former release, which the engine's clock would empty, are not current until they are migrated", async () => {
  const { writing, target } = store;
  await writing.command("ALTER TABLE late.refused_rows MODIFY TTL at + INTERVAL 90 DAY");
  await expect(eventStoreIdentity(writing, target)).rejects.toThrow("run `waybill migrate`");
  await migrateEventStore(writing, target);
  expect(await eventStoreIdentity(writing, target)).toMatch(/-/);
  const [[ttls] = []] = await store.reading.rows(
    "SELECT countIf(match(engine_full, ' TTL ')) FROM system.tables WHERE database IN ('late', 'late_sealed')",
  );
  expect(Number(ttls)).toBe(0);
});

test.each([
  ["2026-03-31T12:00:00Z", 13, "2027-05-01T12:00:00Z"],
  ["2026-01-01T00:00:00Z", 2, "2026-03-01T00:00:00Z"],
])("an event of %s is kept for %d months", (at, months, until) => {
  expect(new Date(eventsKeptUntilMs(Date.parse(at), months)).toISOString().replace(".000", "")).toBe(until);
});
