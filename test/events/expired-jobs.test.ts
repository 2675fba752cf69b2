import { afterAll, beforeAll, expect, test } from "bun:test";
import { firstEventIdAt } from "../../src/domain/event.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { applyRetention } from "../../src/events/retention.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startChdb, type TestEventStore } from "../support/chdb-event-store.ts";
import { DAY_MS } from "../support/recent-days.ts";

const JOBS_DAYS = 7;
let chdb: Awaited<ReturnType<typeof startChdb>>;
let store: TestEventStore;

beforeAll(async () => {
  chdb = await startChdb();
  store = await chdb.eventStore("late", "process");
  await applyRetention(store.writing, store.target, { eventsMonths: 13, jobsDays: JOBS_DAYS });
});
afterAll(() => chdb.stop());

test("a batch that comes after an outage longer than jobs are kept is recorded, and its recorder goes on", async () => {
  const writer = new ClickHouseEventWriter(store.writing, store.target, systemClock, { jobsDays: JOBS_DAYS });
  const finished = { status: "success", attempts: 1, result: {} } as const;
  const endedMs = Date.now() - (JOBS_DAYS + 1) * DAY_MS;
  const rows = [0, 1, 2].map((n) => storedEventRow(firstEventIdAt(endedMs + n), { tenantId: "late", finished }));
  expect(await writer.write("late", rows, "again")).toEqual({ wereThere: false, setAside: 0 });
  expect(await store.reading.rows("SELECT count() FROM late.events")).toEqual([[3]]);
  expect(await store.reading.rows("SELECT count() FROM late.jobs")).toEqual([[0]]);
  expect(await writer.write("late", rows, "again")).toEqual({ wereThere: true, setAside: 0 });
});
