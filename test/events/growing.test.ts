import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ClickHouse } from "../../src/events/clickhouse.ts";
import { eventStoreIdentity, migrateEventStore } from "../../src/events/schema/migrate-event-store.ts";
import { eventStoreFoundation, eventStoreMigrations } from "../../src/events/schema/schema.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { startEngine } from "../support/clickhouse-event-store.ts";
import { expectBalance, readSchema } from "../support/event-store-checker.ts";
import { IS_PROVING } from "../support/proof.ts";

let engine: Awaited<ReturnType<typeof startEngine>>;

beforeAll(async () => {
  engine = await startEngine();
});

afterAll(() => engine.stop());

const CHANNELS = ["email", "whatsapp", "wallet", "file"];
const HOUR = "toDateTime('2026-11-21 10:00:00', 'UTC')";
const EVENT_ID = `(toUnixTimestamp(${HOUR}) * 1000 - 1735689600000) * 4096`;

test("a channel that the app adds is stored, counted and seen by analysts, and the former rows keep theirs", async () => {
  const { writing, reading, target } = await engine.eventStore("widening");
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
  const { writing, reading, target } = await engine.eventStore("numbers");
  await migrateEventStore(writing, target, ["file", "email"]);
  await migrateEventStore(writing, target, ["pager", "email"]);
  const [row] = await reading.rows(
    "SELECT type FROM system.columns WHERE database = 'numbers' AND table = 'jobs' AND name = 'channel'",
  );
  expect(row).toEqual(["Enum8('email' = 1, 'whatsapp' = 2, 'wallet' = 3, 'file' = 4, 'pager' = 5)"]);
});

test("an unsafe channel name never becomes part of a statement", async () => {
  const { writing, target } = await engine.eventStore("plain");
  await expect(migrateEventStore(writing, target, ["a'b"])).rejects.toThrow("broken invariant");
});

describe("with rows of every earlier version", () => {
  const NEWEST = eventStoreMigrations({ database: "any", cluster: null }).length;
  /** Tables that rows are written to, and the step that made them. Events fill all others. */
  const WRITTEN = { events: 1, jobs: 1, refused_rows: 3, failed_payloads: 6 } as const;
  let clickhouse: ClickHouse;

  beforeAll(async () => {
    clickhouse = new ClickHouse({ client: engine.server.writer, clock: systemClock, timeoutMs: 20_000 });
    await migrateEventStore(clickhouse, { database: "fresh", cluster: null });
  });

  async function run(...statements: readonly string[]): Promise<void> {
    for (const statement of statements) await clickhouse.command(statement);
  }

  async function step(database: string, version: number): Promise<void> {
    const target = { database, cluster: null };
    if (version === 1) await run(...eventStoreFoundation(target));
    await run(...(eventStoreMigrations(target).find((each) => each.version === version)?.statements ?? []));
    await run(`INSERT INTO ${database}.migrations VALUES (${version}, 'a step')`);
  }

  /** A failure and all other rows that a release of this version wrote. */
  async function write(database: string, version: number): Promise<void> {
    const id = (Date.now() - Date.UTC(2025, 0, 1)) * 4096 + version;
    const job = `'acme', '${Bun.randomUUIDv7()}', 'email'`;
    const result = `'{"error":"v${version}"}'`;
    await run(
      `INSERT INTO ${database}.events (tenant_id, job_id, channel, event_type, event_id, result) VALUES (${job}, 'failed', ${id}, ${result})`,
      `INSERT INTO ${database}.jobs (tenant_id, job_id, channel, status, attempts, result, version) VALUES (${job}, 'failed', 2, ${result}, ${id})`,
    );
    if (version >= WRITTEN.refused_rows) {
      await run(
        `INSERT INTO ${database}.refused_rows VALUES (now() - ${NEWEST - version}, 'acme', 'token', 'fault', 'v${version}')`,
      );
    }
    if (version >= WRITTEN.failed_payloads) {
      await run(
        `INSERT INTO ${database}_sealed.failed_payloads (tenant_id, job_id, channel, body, version) VALUES (${job}, 'v${version}', ${id})`,
      );
    }
  }

  /** The rows of that version's tables, in the order in which they were written, by the names of their columns. */
  async function readRows(database: string, version: number): Promise<readonly object[]> {
    const all: object[] = [];
    for (const [table, since] of Object.entries(WRITTEN)) {
      if (since > version) continue;
      const name = table === "failed_payloads" ? `${database}_sealed.${table}` : `${database}.${table}`;
      const order = table === "events" ? "event_id" : table === "refused_rows" ? "at" : "version";
      const columns = (await clickhouse.rows(`DESCRIBE ${name}`)).map(([column]) => String(column));
      const rows = await clickhouse.rows(`SELECT ${columns.join(", ")} FROM ${name} ORDER BY ${order}`);
      all.push({ table, rows: rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]]))) });
    }
    return all;
  }

  /** As many tries, minutes and sums as there are failures, and the tables of a new event store. */
  async function expectCurrent(database: string, failures: number): Promise<void> {
    await expectBalance(clickhouse, database);
    const counts = [
      "sum(events) FROM events_by_minute",
      "sum(failed) FROM delivery_funnel",
      "count() FROM jobs_v WHERE error != ''",
    ];
    for (const count of counts) {
      const [row] = await clickhouse.rows(`SELECT ${count.replace("FROM ", `FROM ${database}.`)}`);
      expect([count, Number(row?.[0])]).toEqual([count, failures]);
    }
    expect(await readSchema(clickhouse, database)).toBe(await readSchema(clickhouse, "fresh"));
  }

  test("each step keeps all rows", async () => {
    for (let version = 1; version <= NEWEST; version += 1) {
      const before = version === 1 ? [] : await readRows("walked", version - 1);
      await step("walked", version);
      expect((await readRows("walked", version)).slice(0, before.length)).toMatchObject(before);
      await write("walked", version);
    }
    expect(await migrateEventStore(clickhouse, { database: "walked", cluster: null })).toEqual([]);
    await expectCurrent("walked", NEWEST);
  });

  /** The version of the first data folders outside of development, and the latest; `npm run prove`: all of them. */
  const FORMER = IS_PROVING ? Array.from({ length: NEWEST - 1 }, (_, i) => i + 1) : [1, 2, NEWEST - 1];

  test.each(FORMER)("version %i becomes the newest at once", async (version) => {
    const database = `from_${version}`;
    for (let each = 1; each <= version; each += 1) {
      await step(database, each);
      await write(database, each);
    }
    const before = await readRows(database, version);
    expect((await migrateEventStore(clickhouse, { database, cluster: null })).length).toBe(NEWEST - version);
    expect((await readRows(database, NEWEST)).slice(0, before.length)).toMatchObject(before);
    await expectCurrent(database, version);
  });
});

test("an event store of a later version is refused, and not changed", async () => {
  const { writing, reading, target } = await engine.eventStore("future");
  await writing.command("INSERT INTO future.migrations VALUES (1000, 'from the future')");
  const before = await readSchema(reading, "future");
  await expect(migrateEventStore(writing, target, ["email", "pager"])).rejects.toThrow("a later version of Waybill");
  expect(await readSchema(reading, "future")).toBe(before);
  // A process beside one of the later version goes on: schemas only grow.
  await eventStoreIdentity(reading, target);
});
