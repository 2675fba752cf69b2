import { afterAll, beforeAll, expect, test } from "bun:test";
import { JobIds } from "../../src/domain/ids.ts";
import { EVENT_EPOCH_MS, EVENT_IDS_PER_MS } from "../../src/domain/jobs/event.ts";
import type { StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { TenantRemoval } from "../../src/events/remove-tenant.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";
import { eventually } from "../support/eventually.ts";

const ids = new JobIds(systemClock, systemRandom);
let chdb: Awaited<ReturnType<typeof startEngine>>;
let store: TestEventStore;

beforeAll(async () => {
  chdb = await startEngine();
  store = await chdb.eventStore("leaving");
});
afterAll(() => chdb.stop());

test("a deleted tenant's history leaves, its sums and its neighbours stay", async () => {
  const writer = new ClickHouseEventWriter(store.writing, store.target, systemClock);
  let event = (Date.now() - EVENT_EPOCH_MS) * EVENT_IDS_PER_MS;
  const failed = (tenantId: string): StoredEventRow => {
    event += 1;
    const result = { error: "no" };
    const finished = { status: "failed", attempts: 1, result } as const;
    return { tenantId, jobId: ids.next(), channel: "email", eventId: event, type: "failed", result, finished };
  };
  await writer.write("one", [failed("acme"), failed("acme"), failed("acme2"), failed("beta")]);
  const count = async (table: string) =>
    (await store.reading.rows(`SELECT tenant_id, count() FROM leaving.${table} GROUP BY 1 ORDER BY 1`)).map(String);
  const removal = new TenantRemoval(store, store.target);
  expect(await removal.removeHistory("acme")).toBe(false);
  await eventually("nothing is left", () => removal.removeHistory("acme"));
  for (const table of ["jobs", "events", "events_by_type"]) expect(await count(table)).toEqual(["acme2,1", "beta,1"]);
  expect(await store.reading.rows("SELECT sum(events) FROM leaving.events_daily WHERE tenant_id = 'acme'")).toEqual([
    [2],
  ]);
  expect(await removal.removeHistory("acme")).toBe(true);
});
