import { afterAll, beforeAll, expect, test } from "bun:test";
import type { EventType } from "../../../src/domain/jobs/event.ts";
import { RowsRefusedError, type StoredEventRow } from "../../../src/domain/jobs/event-store.ts";
import { startEngine, type TestEventStore } from "../../support/clickhouse-event-store.ts";
import { expectStoredOnce } from "../../support/event-store-checker.ts";
import { batchAt, newToken } from "./forgetful-event-store.ts";

let engine: Awaited<ReturnType<typeof startEngine>>;
let databases = 0;

beforeAll(async () => {
  engine = await startEngine();
}, 300_000);
afterAll(async () => {
  await engine.stop();
}, 90_000);

const newEventStore = () => engine.eventStore(`refusing_${(databases += 1)}`);

const setAside = ({ reading, target }: TestEventStore) =>
  reading.rows(`SELECT tenant_id, fault, row FROM ${target.database}.refused_rows ORDER BY row`);

/** The row in a form that every table refuses. */
const POISON: readonly (readonly [string, (row: StoredEventRow) => StoredEventRow])[] = [
  ["a type that the enum does not have", (row) => ({ ...row, type: "exploded" as EventType })],
  [
    "text that is no text",
    (row) => ({ ...row, finished: { status: "failed", attempts: 1, result: {}, template: "\ud800" } }),
  ],
  ["a tenant that is none", (row) => ({ ...row, tenantId: "x'; DROP" })],
  ["a job id that is none", (row) => ({ ...row, jobId: "\0" })],
  ["an event id that is none", (row) => ({ ...row, eventId: 1.5 })],
];

test.each(POISON)(
  "one row with %s is set aside with its reason, once, and all others are recorded",
  async (_, poisoned) => {
    const eventStore = await newEventStore();
    const [token, good] = [newToken(), batchAt(1_000, 40)];
    const poison = poisoned(batchAt(1_017, 1)[0] ?? never());
    const rows = good.map((row, n) => (n === 17 ? poison : row));
    await expect(eventStore.writer.write(token, rows)).rejects.toBeInstanceOf(RowsRefusedError);
    await expect(eventStore.writer.write(token, rows, "again")).rejects.toBeInstanceOf(RowsRefusedError);
    for (let round = 0; round < 2; round += 1) {
      expect(await eventStore.writer.write(token, rows, "apart")).toMatchObject({ setAside: 1 });
      const [one, ...others] = await setAside(eventStore);
      expect(others).toEqual([]);
      expect(JSON.parse(String(one?.[2]))).toMatchObject({ channel: "email", result: {} });
      expect(String(one?.[1])).not.toBe("");
    }
    const others = rows.filter((row) => row !== poison);
    const stored = await eventStore.reading.rows(
      `SELECT version FROM ${eventStore.target.database}.jobs ORDER BY version`,
    );
    expect(stored.map(([version]) => Number(version))).toEqual(others.map(({ eventId }) => eventId));
    const events = await eventStore.reading.rows(`SELECT DISTINCT event_id FROM ${eventStore.target.database}.events`);
    expect(events.length).toBeWithin(39, 41);
  },
  90_000,
);

test("what the engine says of a refused row, which is logged, quotes neither it nor its neighbours", async () => {
  const eventStore = await newEventStore();
  const result = { diagnostic: "550 5.1.1 <ann@example.com> unknown" };
  const finished = { status: "failed", attempts: 1, result } as const;
  const rows = batchAt(1_000, 3).map((row, n) => ({ ...row, result, finished: { ...finished, attempts: 1 - 2 * n } }));
  const error: unknown = await eventStore.writer.write(newToken(), rows).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RowsRefusedError);
  expect(String(error)).toContain("clickhouse refused rows: ");
  expect(String(error)).not.toContain("ann@");
  const statement = "SELECT nothing_such FROM numbers(1) WHERE {recipient:String} > ''";
  const failed = eventStore.reading.rows(statement, { recipient: "ann@example.com" });
  const said = String(await failed.catch((reason: unknown) => reason));
  expect(said).toContain("nothing_such");
  expect(said).not.toContain("ann@");
});

test("rows refused because their table does not fit are not set aside: the batch waits", async () => {
  const eventStore = await newEventStore();
  const rows = batchAt(1_000, 40).map((row, n) => (n < 11 ? { ...row, type: "exploded" as EventType } : row));
  await expect(eventStore.writer.write(newToken(), rows, "apart")).rejects.toBeInstanceOf(RowsRefusedError);
  expect(await setAside(eventStore)).toEqual([]);
});

test("a batch without a refused row is recorded whole, even if part of it is already there", async () => {
  const eventStore = await newEventStore();
  const [token, rows] = [newToken(), batchAt(1_000, 40)];
  await eventStore.writer.write(newToken(), rows.slice(0, 10));
  expect(await eventStore.writer.write(token, rows, "apart")).toEqual({ wereThere: true, setAside: 0 });
  await expectStoredOnce(eventStore.reading, eventStore.target.database, rows);
});

function never(): never {
  throw new Error("a batch has rows");
}
