import { afterAll, beforeAll, expect, test } from "bun:test";
import { ConfigurationError } from "../../../src/domain/errors.ts";
import { eventStoreIdentity, migrateEventStore } from "../../../src/events/schema/migrate-event-store.ts";
import { startEngine } from "../../support/clickhouse-event-store.ts";

let chdb: Awaited<ReturnType<typeof startEngine>>;

beforeAll(async () => {
  chdb = await startEngine();
}, 300_000);

afterAll(() => chdb.stop());

test("an event store has an identity of its own, which never changes", async () => {
  const [one, two] = [await chdb.eventStore("one"), await chdb.eventStore("two")];
  const id = await eventStoreIdentity(one.reading, one.target);
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  await migrateEventStore(one.writing, one.target);
  expect(await eventStoreIdentity(one.reading, one.target)).toBe(id);
  expect(await eventStoreIdentity(two.reading, two.target)).not.toBe(id);
}, 300_000);

test("a store without the database of contents, as of a backup that left it out, is refused until it is migrated", async () => {
  const { target, reading, writing } = await chdb.eventStore("alone");
  await writing.command("DROP DATABASE alone_sealed SYNC");
  await expect(eventStoreIdentity(reading, target)).rejects.toThrow("run `waybill migrate`");
  expect(await migrateEventStore(writing, target)).toEqual([]);
  await eventStoreIdentity(reading, target);
  expect(await reading.rows("SELECT count() FROM alone_sealed.failed_payloads")).toEqual([[0]]);
}, 300_000);

test("a schema that is not the current one is refused", async () => {
  const { target, reading, writing } = await chdb.eventStore("old");
  const refusal = new ConfigurationError(
    "The ClickHouse database old has no current schema: run `waybill migrate` (npm run migrate).",
  );
  await writing.command("ALTER TABLE old.migrations DELETE WHERE version = 2 SETTINGS mutations_sync = 2");
  await expect(eventStoreIdentity(reading, target)).rejects.toEqual(refusal);
  const none = { database: "none", cluster: null };
  const expected = expect.objectContaining({ message: expect.stringContaining("database none has no current schema") });
  await expect(eventStoreIdentity(reading, none)).rejects.toEqual(expected);
}, 300_000);
