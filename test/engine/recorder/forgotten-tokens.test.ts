import { afterAll, beforeAll, expect, test } from "bun:test";
import { TransportError } from "../../../src/domain/errors.ts";
import { startEngine } from "../../support/clickhouse-event-store.ts";
import { expectStoredOnce } from "../../support/event-store-checker.ts";
import { batchAt, ForgetfulEventStore, newToken } from "./forgetful-event-store.ts";

let engine: Awaited<ReturnType<typeof startEngine>>;
let databases = 0;

beforeAll(async () => {
  engine = await startEngine();
}, 300_000);
afterAll(async () => {
  await engine.stop();
}, 90_000);

async function newEventStore() {
  const { writing, target } = await engine.eventStore(`forgetful_${(databases += 1)}`);
  const eventStore = new ForgetfulEventStore(writing, target.database);
  await eventStore.forgetSoon();
  return eventStore;
}

test("a batch that may have been written long ago is stored once", async () => {
  const eventStore = await newEventStore();
  const [token, rows] = [newToken(), batchAt(1_000)];
  await eventStore.writer.write(token, rows);
  await eventStore.writeOthers(2_000);
  expect(await eventStore.writer.write(token, rows, "again")).toEqual({ wereThere: true, setAside: 0 });
  await expectStoredOnce(eventStore.clickhouse, eventStore.database, rows);
  const fresh = batchAt(3_000);
  expect(await eventStore.writer.write(newToken(), fresh, "again")).toEqual({ wereThere: false, setAside: 0 });
  await expectStoredOnce(eventStore.clickhouse, eventStore.database, fresh);
}, 90_000);

test("without a check it would be stored twice: its token is forgotten", async () => {
  const eventStore = await newEventStore();
  const [token, rows] = [newToken(), batchAt(1_000)];
  await eventStore.writer.write(token, rows);
  await eventStore.writeOthers(2_000);
  await eventStore.writer.write(token, rows);
  const twice = `SELECT event_id FROM ${eventStore.database}.events GROUP BY 1 HAVING count() > 1`;
  expect(await eventStore.clickhouse.rows(twice)).toHaveLength(rows.length);
}, 90_000);

test.each([
  ["some of its events", "events", "event_id % 3 = 0"],
  ["all of its jobs", "jobs", "1"],
  ["its rare events in their own order", "events_by_type", "1"],
  ["a tenant's hour in the sums", "events_hourly", "tenant_id = 'tenant-0'"],
  ["a tenant's day in the sums", "events_daily", "tenant_id = 'tenant-1'"],
])(
  "a batch whose token is forgotten gets the rows it lacks: %s",
  async (_, table, lost) => {
    const eventStore = await newEventStore();
    const [token, rows] = [newToken(), batchAt(1_000)];
    await eventStore.writer.write(token, rows);
    // In the same hour and day, of the same tenants.
    await eventStore.writer.write(newToken(), batchAt(1_500));
    await eventStore.writeOthers(2_000);
    // The events' copies and sums are as an insert leaves them that was cut off before it reached the events.
    const tables = table === "events" ? ["events", "events_by_type", "events_hourly", "events_daily"] : [table];
    for (const one of tables) {
      if (one === "events_hourly" || one === "events_daily") continue;
      const isOfBatch = `${one === "jobs" ? "version" : "event_id"} IN (${rows.map(({ eventId }) => eventId).join(", ")})`;
      await eventStore.clickhouse.command(
        `ALTER TABLE ${eventStore.database}.${one} DELETE WHERE ${lost} AND ${isOfBatch} SETTINGS mutations_sync = 1`,
      );
    }
    if (table.endsWith("ly") || table === "events") await resum(eventStore, table === "events" ? "1" : `NOT (${lost})`);
    eventStore.letTimePass();
    const { outcome, tries } = await eventStore.complete(token, rows);
    expect(outcome.wereThere).toBe(true);
    // Not at the first check: an abandoned insert may still be running. A job\'s state replaces itself.
    expect(tries).toBe(table === "jobs" ? 1 : 2);
    await expectStoredOnce(eventStore.clickhouse, eventStore.database, rows);
  },
  90_000,
);

/** Recomputes the sums from the existing events that match this condition. */
async function resum({ clickhouse, database }: ForgetfulEventStore, which: string): Promise<void> {
  for (const [table, of] of [
    ["events_hourly", "toStartOfHour"],
    ["events_daily", "toDate"],
  ] as const) {
    await clickhouse.command(`TRUNCATE TABLE ${database}.${table}`);
    await clickhouse.command(
      `INSERT INTO ${database}.${table} SELECT tenant_id, ${of}(toDateTime(intDiv(event_id, 4096000) + 1735689600, 'UTC')), channel, event_type, count(), machine
FROM ${database}.events WHERE ${which} GROUP BY ALL SETTINGS insert_deduplicate = 0`,
    );
  }
}

test("a batch waits for the rest while its rows are still arriving", async () => {
  const eventStore = await newEventStore();
  const [token, rows] = [newToken(), batchAt(1_000)];
  await eventStore.writer.write(newToken(), rows.slice(0, 2));
  eventStore.letTimePass();
  await expect(eventStore.writer.write(token, rows, "again")).rejects.toBeInstanceOf(TransportError);
  await eventStore.writer.write(newToken(), rows.slice(2, 4));
  eventStore.letTimePass();
  await expect(eventStore.writer.write(token, rows, "again")).rejects.toBeInstanceOf(TransportError);
  eventStore.letTimePass();
  await eventStore.writer.write(token, rows, "again");
  await expectStoredOnce(eventStore.clickhouse, eventStore.database, rows);
}, 90_000);
