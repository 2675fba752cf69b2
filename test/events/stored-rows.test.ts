import { afterAll, beforeAll, expect, test } from "bun:test";
import { ClickHouse, type QueryParams } from "../../src/events/clickhouse.ts";
import { derivedGaps } from "../../src/events/derived-gaps.ts";
import { storedRows } from "../../src/events/stored-rows.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { eventIdAt, storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";

const BETWEEN = 100_000;
const THREE_HOURS_MS = 3 * 3_600_000;

class CountingClickHouse extends ClickHouse {
  /** Of all answers. */
  rowsAnswered = 0;

  override async rows(sql: string, params: QueryParams = {}) {
    const rows = await super.rows(sql, params);
    this.rowsAnswered += rows.length;
    return rows;
  }
}

let engine: Awaited<ReturnType<typeof startEngine>>;
let eventStore: TestEventStore;
beforeAll(async () => {
  engine = await startEngine();
  eventStore = await engine.eventStore("looked_up");
}, 300_000);
afterAll(() => engine.stop());

test("a batch with a shard that is hours behind is looked up without what the others have in between", async () => {
  const { client, writing, writer, target } = eventStore;
  await writing.command(`INSERT INTO looked_up.events (tenant_id, event_id, job_id, channel, event_type)
SELECT 'ahead', ${eventIdAt(1)} + number * 4096 * ${Math.floor(THREE_HOURS_MS / BETWEEN)}, generateUUIDv7(number), 'email', 'bounced'
FROM numbers(${BETWEEN})`);
  const row = (ms: number, tenantId: string) => storedEventRow(eventIdAt(ms), { tenantId, type: "bounced" });
  // More than one statement names.
  const stored = [...Array.from({ length: 1_200 }, (_, n) => row(n, "behind")), row(THREE_HOURS_MS, "ahead")];
  const missing = [row(1_200, "behind"), row(THREE_HOURS_MS + 1, "ahead")];
  await writer.write("s1:stored", stored);

  const clickhouse = new CountingClickHouse({ client, clock: systemClock, timeoutMs: 20_000 });
  const found = await storedRows(clickhouse, target, [...missing, ...stored]);
  expect(stored.filter((each) => !found.hasEvent(each))).toEqual([]);
  expect(missing.filter((each) => found.hasEvent(each))).toEqual([]);
  expect(await derivedGaps(clickhouse, target, stored)).toEqual([]);
  const gaps = await derivedGaps(clickhouse, target, missing);
  expect(gaps.map(({ table, values }) => [table, ...values.slice(0, 2)])).toEqual(
    missing.map(({ tenantId, eventId }) => ["events_by_type", tenantId, eventId]),
  );
  // A few times as many as the batch has.
  expect(clickhouse.rowsAnswered).toBeLessThan(BETWEEN / 10);
});
