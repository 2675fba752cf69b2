import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventStoreIdentity, migrateEventStore } from "../../src/events/migrate-event-store.ts";
import { startChdb } from "../support/chdb-event-store.ts";

let engine: Awaited<ReturnType<typeof startChdb>>;

beforeAll(async () => {
  engine = await startChdb();
});

afterAll(() => engine.stop());

const CHANNELS = ["email", "whatsapp", "wallet", "file"];
const HOUR = "toDateTime('2026-11-21 10:00:00', 'UTC')";
const EVENT_ID = `(toUnixTimestamp(${HOUR}) * 1000 - 1735689600000) * 4096`;

test("a channel that the app adds is stored, counted and seen by analysts, and the former rows keep theirs", async () => {
  const { writing, reading, target } = await engine.eventStore("widening", "process");
  const store = (channel: string, n: number, type: string) =>
    writing.command(
      `INSERT INTO widening.events (tenant_id, event_id, job_id, channel, event_type) SELECT 'acme', ${EVENT_ID} + ${n}, generateUUIDv7(), '${channel}', '${type}'`,
    );
  await store("wallet", 1, "failed");
  await expect(eventStoreIdentity(reading, target, CHANNELS)).rejects.toThrow("run `waybill migrate`");

  expect(await migrateEventStore(writing, target, CHANNELS)).toEqual([]);
  await eventStoreIdentity(reading, target, CHANNELS);
  await store("file", 2, "failed");
  const rows = (table: string) =>
    reading.rows(`SELECT channel, toInt8(channel) FROM widening.${table} ORDER BY toInt8(channel)`);
  for (const table of ["events", "events_by_type", "events_hourly", "events_daily", "events_v", "delivery_funnel"]) {
    expect([table, await rows(table)]).toEqual([
      table,
      [
        ["wallet", 3],
        ["file", 4],
      ],
    ]);
  }
});

test("names keep their numbers in any order of the list, and after a channel has been removed from it", async () => {
  const { writing, reading, target } = await engine.eventStore("numbers", "process");
  await migrateEventStore(writing, target, ["file", "email"]);
  await migrateEventStore(writing, target, ["pager", "email"]);
  const [row] = await reading.rows(
    "SELECT type FROM system.columns WHERE database = 'numbers' AND table = 'jobs' AND name = 'channel'",
  );
  expect(row).toEqual(["Enum8('email' = 1, 'whatsapp' = 2, 'wallet' = 3, 'file' = 4, 'pager' = 5)"]);
});

test("an unsafe channel name never becomes part of a statement", async () => {
  const { writing, target } = await engine.eventStore("plain", "process");
  await expect(migrateEventStore(writing, target, ["a'b"])).rejects.toThrow("broken invariant");
});
