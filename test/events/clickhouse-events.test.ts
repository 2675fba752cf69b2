import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { JobIds } from "../../src/domain/ids.ts";
import { eventTimeMs, firstEventIdAt } from "../../src/domain/jobs/event.ts";
import {
  type EventQuery,
  RowsRefusedError,
  type StoredEventRow,
  type TenantEvent,
} from "../../src/domain/jobs/event-store.ts";
import { ClickHouse, connectClickHouse } from "../../src/events/clickhouse.ts";
import { ClickHouseEventReader } from "../../src/events/clickhouse-event-reader.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { migrateEventStore } from "../../src/events/schema/migrate-event-store.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { eventIdAt, NOON_MS, newJobId, storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";

const HOSTILE = [
  "it's; DROP TABLE events --",
  "\\",
  "\\' OR 1=1",
  "\u0000\u0001\u001f\n\r\t",
  "\ud800 alone",
  "👩‍👩‍👧 ünïcödé \u2028",
  ']\n["acme",1',
  "{{.x}} %s ${y} `z`",
  "FORMAT JSONCompactEachRow",
];

/** Four inserts for each, at each position; without a token the first of them fails. */
const RACES = 8;

let engine: Awaited<ReturnType<typeof startEngine>>;
let freshTenant = 0;
const ALL_VERSIONS = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const newTenant = () => `tenant-${(freshTenant += 1)}`;

beforeAll(async () => {
  engine = await startEngine();
});
afterAll(async () => {
  await engine.stop();
});

const everything = (tenantId: string, changes: Partial<EventQuery> = {}): EventQuery => ({
  tenantId,
  fromEventId: 0,
  toEventId: Number.MAX_SAFE_INTEGER,
  channel: null,
  type: null,
  limit: 500,
  ...changes,
});

/** The event that the reader must return for a row. */
const shown = ({ eventId, type, result, jobId, channel }: StoredEventRow): TenantEvent => ({
  eventId,
  type,
  result,
  jobId,
  channel,
});

describe("an event store", () => {
  let eventStore: TestEventStore;
  let token = 0;
  const newToken = () => `s1:${(token += 1)}-0/${token}-9`;
  beforeAll(async () => {
    eventStore = await engine.eventStore("conform");
  });

  async function readAll(query: EventQuery): Promise<TenantEvent[]> {
    const events: TenantEvent[] = [];
    let toEventId = query.toEventId;
    for (;;) {
      const page = await eventStore.reader.page({ ...query, toEventId });
      events.push(...page.events);
      const last = page.events.at(-1);
      if (!page.hasMore || last === undefined) return events;
      toEventId = last.eventId;
    }
  }

  test("a current schema is left as it is, and an interrupted migration is completed", async () => {
    expect(await migrateEventStore(eventStore.writing, eventStore.target)).toEqual([]);
    await eventStore.writing.command(`TRUNCATE TABLE ${eventStore.target.database}.migrations`);
    await eventStore.writing.command(`DROP TABLE ${eventStore.target.database}.events_v`);
    expect(await migrateEventStore(eventStore.writing, eventStore.target)).toEqual(ALL_VERSIONS);
    await eventStore.reading.rows(`SELECT created_at, day FROM ${eventStore.target.database}.events_v LIMIT 1`);
  });

  test("following the pages shows each event once, newest first, whatever the size of a page", async () => {
    const tenantId = newTenant();
    const rows = Array.from({ length: 23 }, (_, n) => storedEventRow(eventIdAt(n), { tenantId }));
    for (const part of [rows.slice(0, 9), rows.slice(9, 10), rows.slice(10)]) {
      await eventStore.writer.write(newToken(), part);
    }
    const newestFirst = rows.map(shown).reverse();
    for (const limit of [1, 2, 7, 22, 23, 24]) {
      expect(await readAll(everything(tenantId, { limit }))).toEqual(newestFirst);
    }
    for (const [at, { eventId }] of newestFirst.entries()) {
      const page = await eventStore.reader.page(everything(tenantId, { toEventId: eventId, limit: 5 }));
      expect(page).toEqual({
        events: newestFirst.slice(at + 1, at + 6),
        hasMore: newestFirst.length > at + 6,
      });
    }
  });

  test("a range includes its first id and excludes its last", async () => {
    const tenantId = newTenant();
    await eventStore.writer.write(
      newToken(),
      [1, 2, 3, 4].map((n) => storedEventRow(eventIdAt(n), { tenantId })),
    );
    const ids = async (from: number, to: number) =>
      (await eventStore.reader.page(everything(tenantId, { fromEventId: from, toEventId: to }))).events.map(
        ({ eventId }) => eventId,
      );
    expect(await ids(eventIdAt(2), eventIdAt(4))).toEqual([eventIdAt(3), eventIdAt(2)]);
    expect(await ids(eventIdAt(2), eventIdAt(2))).toEqual([]);
    expect(await ids(-1e18, 1e18)).toHaveLength(4);
  });

  test("wallet events are shown only to those who ask for them", async () => {
    const tenantId = newTenant();
    const email = storedEventRow(eventIdAt(1), { tenantId, type: "bounced" });
    const chat = storedEventRow(eventIdAt(2), { tenantId, channel: "whatsapp", type: "read" });
    const wallet = storedEventRow(eventIdAt(3), { tenantId, channel: "wallet" });
    await eventStore.writer.write(newToken(), [email, chat, wallet]);
    const page = async (changes: Partial<EventQuery>) =>
      (await eventStore.reader.page(everything(tenantId, changes))).events;
    expect(await page({})).toEqual([shown(chat), shown(email)]);
    expect(await page({ channel: "wallet" })).toEqual([shown(wallet)]);
    expect(await page({ channel: "email" })).toEqual([shown(email)]);
    expect(await page({ type: "read" })).toEqual([shown(chat)]);
    expect(await page({ channel: "email", type: "read" })).toEqual([]);
  });

  test("a tenant sees no other tenant's events", async () => {
    const [mine, other] = [newTenant(), newTenant()];
    const jobId = newJobId();
    const finished = { status: "success", attempts: 1, result: {} } as const;
    await eventStore.writer.write(newToken(), [storedEventRow(eventIdAt(1), { tenantId: other, jobId, finished })]);
    expect(await eventStore.reader.page(everything(mine))).toEqual({ events: [], hasMore: false });
    expect(await eventStore.reader.job(mine, jobId)).toBeNull();
    const job = await eventStore.reader.job(other, jobId);
    expect(job).toMatchObject({ status: "success", attempts: 1 });
    // The job has not been retried.
    expect(job).not.toHaveProperty("began");
  });

  test("hostile text comes back as it was and breaks nothing", async () => {
    const tenantId = newTenant();
    const rows = HOSTILE.map((text, n) =>
      storedEventRow(eventIdAt(n), {
        tenantId,
        type: "failed",
        result: { error: text, [text]: [text] },
        finished: { status: "failed", attempts: 12, result: { error: text } },
      }),
    );
    await eventStore.writer.write(newToken(), rows);
    expect(await readAll(everything(tenantId))).toEqual(rows.map(shown).reverse());
    for (const { jobId, finished } of rows) {
      expect((await eventStore.reader.job(tenantId, jobId))?.result).toEqual(finished?.result ?? null);
    }
  });

  test("names that are not plain never reach the database", async () => {
    for (const text of HOSTILE) {
      expect(await eventStore.reader.job(text, newJobId())).toBeNull();
      expect(await eventStore.reader.job("acme", text)).toBeNull();
      await expect(eventStore.reader.page(everything(text))).rejects.toThrow("broken invariant");
      for (const row of [storedEventRow(1, { tenantId: text }), storedEventRow(1, { jobId: text })]) {
        await expect(eventStore.writer.write(newToken(), [row])).rejects.toBeInstanceOf(RowsRefusedError);
      }
    }
    await expect(eventStore.writer.write("a' b", [storedEventRow(eventIdAt(1))])).rejects.toThrow("broken invariant");
  });

  test("a batch that is written again changes nothing", async () => {
    const tenantId = newTenant();
    const finished = { status: "success", attempts: 1, result: {} } as const;
    const rows = [1, 2, 3].map((n) => storedEventRow(eventIdAt(n), { tenantId, finished }));
    const [first, second] = [newToken(), newToken()];
    await eventStore.writer.write(first, rows);
    await eventStore.writer.write(second, [storedEventRow(eventIdAt(4), { tenantId })]);
    await eventStore.writer.write(first, rows);
    expect(await count("events", tenantId)).toBe(4);
    expect(await count("jobs", tenantId)).toBe(3);
  });

  test("a batch that is repeated while its first insert is still running is stored once", async () => {
    const tenantId = newTenant();
    const finished = { status: "success", attempts: 1, result: {} } as const;
    for (let n = 0; n < RACES; n += 1) {
      const rows = [storedEventRow(eventIdAt(n), { tenantId, finished })];
      const token = newToken();
      await Promise.all([1, 2, 3, 4].map(() => eventStore.writer.write(token, rows)));
    }
    expect([await count("events", tenantId), await count("jobs", tenantId)]).toEqual([RACES, RACES]);
  }, 90_000);

  test("the repeat of a batch completes it if only its events were stored", async () => {
    const tenantId = newTenant();
    const finished = { status: "success", attempts: 1, result: {} } as const;
    const rows = [1, 2].map((n) => storedEventRow(eventIdAt(n), { tenantId, finished }));
    const refusing = new ClickHouse({
      client: new Proxy(eventStore.client, {
        get: (client, name) =>
          name === "exec"
            ? (params: { query: string; values: never }) =>
                params.query.includes(".jobs") ? Promise.reject(new Error("cut off")) : client.exec(params)
            : Reflect.get(client, name),
      }),
      clock: systemClock,
      timeoutMs: 20_000,
    });
    const token = newToken();
    const cutOff = new ClickHouseEventWriter(refusing, eventStore.target, systemClock).write(token, rows);
    await expect(cutOff).rejects.toBeInstanceOf(TransportError);
    expect([await count("events", tenantId), await count("jobs", tenantId)]).toEqual([2, 0]);
    await eventStore.writer.write(token, rows);
    expect([await count("events", tenantId), await count("jobs", tenantId)]).toEqual([2, 2]);
  });

  test("batches with equal rows and different tokens are all stored, and each event is shown once", async () => {
    const tenantId = newTenant();
    const finished = { status: "success", attempts: 1, result: {} } as const;
    const rows = [1, 2, 3].map((n) => storedEventRow(eventIdAt(n), { tenantId, finished }));
    await eventStore.writer.write(newToken(), rows);
    await eventStore.writer.write(newToken(), rows);
    expect(await count("events", tenantId)).toBe(6);
    for (const limit of [1, 2, 3, 4, 6]) {
      expect(await readAll(everything(tenantId, { limit }))).toEqual(rows.map(shown).reverse());
    }
    const job = await eventStore.reader.job(tenantId, rows[0]?.jobId ?? "");
    expect(job?.events).toHaveLength(1);
  });

  test("a batch too large for one insert is stored whole, and once", async () => {
    const tenantId = newTenant();
    const result = { pkpass_base64: "A".repeat(3_000_000) };
    const rows = [1, 2, 3, 4].map((n) =>
      storedEventRow(eventIdAt(n), {
        tenantId,
        channel: "wallet",
        finished: { status: "success", attempts: 1, result },
      }),
    );
    const token = newToken();
    await eventStore.writer.write(token, rows);
    await eventStore.writer.write(token, rows);
    expect(await count("jobs", tenantId)).toBe(4);
    expect((await eventStore.reader.job(tenantId, rows[3]?.jobId ?? ""))?.result).toEqual(result);
  });

  test("a finished job is found with its latest state and its events, oldest first", async () => {
    const tenantId = newTenant();
    const jobId = newJobId();
    const failed = { status: "failed", attempts: 12, result: { error: "refused" } } as const;
    await eventStore.writer.write(newToken(), [
      storedEventRow(eventIdAt(1), {
        tenantId,
        jobId,
        type: "failed",
        result: { error: "refused" },
        finished: failed,
      }),
      storedEventRow(eventIdAt(2), { tenantId }),
    ]);
    expect(await eventStore.reader.job(tenantId, jobId)).toMatchObject({ status: "failed", attempts: 12 });
    const sent = { status: "success", attempts: 13, result: {} } as const;
    await eventStore.writer.write(newToken(), [
      storedEventRow(eventIdAt(3), { tenantId, jobId, finished: sent }),
      storedEventRow(eventIdAt(4), { tenantId, jobId, type: "clicked", result: { url: "https://a.test/?b" } }),
    ]);
    expect(await eventStore.reader.job(tenantId, jobId)).toEqual({
      jobId,
      tenantId,
      channel: "email",
      ...sent,
      events: [
        { eventId: eventIdAt(1), type: "failed", result: { error: "refused" } },
        { eventId: eventIdAt(3), type: "sent", result: {} },
        { eventId: eventIdAt(4), type: "clicked", result: { url: "https://a.test/?b" } },
      ],
    });
  });

  test.each([
    ["an hour ahead", 3_600_000],
    ["years ahead", 5 * 365 * 86_400_000],
    ["years behind", -5 * 365 * 86_400_000],
  ])("a job whose id was made by a clock %s is found with all its events, and is kept", async (_, aheadMs) => {
    const tenantId = newTenant();
    const jobId = new JobIds({ ...systemClock, nowMs: () => Date.now() + aheadMs }, systemRandom).next();
    const sent = { status: "success", attempts: 1, result: {} } as const;
    const rows = [
      storedEventRow(eventIdAt(1), { tenantId, jobId, finished: sent }),
      storedEventRow(eventIdAt(2), { tenantId, jobId, type: "delivered" }),
    ];
    await eventStore.writer.write(newToken(), rows);
    await eventStore.writing.command(`OPTIMIZE TABLE ${eventStore.target.database}.jobs FINAL`);
    const job = await eventStore.reader.job(tenantId, jobId);
    expect(job?.events.map(({ type }) => type)).toEqual(["sent", "delivered"]);
  });

  test("a page has the events that a faster clock than the reader's has numbered", async () => {
    const tenantId = newTenant();
    const rows = [1, 2].map((n) => storedEventRow(eventIdAt(n), { tenantId }));
    await eventStore.writer.write(newToken(), rows);
    const slow = { ...systemClock, nowMs: () => NOON_MS - 3_600_000 };
    const reader = new ClickHouseEventReader(eventStore.reading, eventStore.target, slow);
    expect((await reader.page(everything(tenantId))).events).toEqual(rows.map(shown).reverse());
  });

  test("events are summed by the hours and days of UTC, whichever zone the server is in", async () => {
    const tenantId = newTenant();
    const atMs = NOON_MS - 9 * 3_600_000;
    await eventStore.writer.write(newToken(), [storedEventRow(firstEventIdAt(atMs), { tenantId })]);
    const sum = (column: string, table: string) =>
      eventStore.reading.rows(
        `SELECT toUnixTimestamp(${column}) FROM ${eventStore.target.database}.${table} WHERE tenant_id = '${tenantId}'`,
      );
    expect(await sum("hour", "events_hourly")).toEqual([[atMs / 1000]]);
    expect(await sum("toDateTime(day, 'UTC')", "events_daily")).toEqual([[(NOON_MS - 12 * 3_600_000) / 1000]]);
  });

  test("a job that is not finished is unknown, although it has events", async () => {
    const row = storedEventRow(eventIdAt(1), { tenantId: newTenant() });
    await eventStore.writer.write(newToken(), [row]);
    expect(await eventStore.reader.job(row.tenantId, row.jobId)).toBeNull();
  });

  test("an event's time is computed from its id as exactly as the program does it", async () => {
    const tenantId = newTenant();
    // Past 2^31 seconds a plain division is a millisecond off for some.
    const idsFrom = (firstId: number) => Array.from({ length: 2_000 }, (_, n) => firstId + n * 4096 + (n % 4096));
    const ids = [...idsFrom(eventIdAt(0)), ...idsFrom(firstEventIdAt(2_147_485_046_000))];
    const rows = ids.map((eventId) => storedEventRow(eventId, { tenantId }));
    await eventStore.writer.write(newToken(), rows);
    const stored = await eventStore.reading.rows(
      `SELECT event_id, toUnixTimestamp64Milli(created_at) FROM ${eventStore.target.database}.events WHERE tenant_id = '${tenantId}' ORDER BY event_id`,
    );
    expect(stored.map(([, time]) => Number(time))).toEqual(rows.map(({ eventId }) => eventTimeMs(eventId)));
  });

  test("a result that was damaged by hand is empty and hides nothing else", async () => {
    const tenantId = newTenant();
    const row = storedEventRow(eventIdAt(1), { tenantId });
    for (const [n, text] of ["", "{", "[1]", "null"].entries()) {
      await eventStore.writing.insert(
        `INSERT INTO ${eventStore.target.database}.events (tenant_id, event_id, job_id, channel, event_type, result) SETTINGS insert_deduplication_token = 'damaged-${n}' FORMAT JSONCompactEachRow`,
        JSON.stringify([tenantId, eventIdAt(n), row.jobId, "email", "sent", text]),
      );
    }
    const { events } = await eventStore.reader.page(everything(tenantId));
    expect(events.map(({ result }) => result)).toEqual([{}, {}, {}, {}]);
  });

  test("a call that the server refuses fails, and the next one works", async () => {
    const insert = `INSERT INTO ${eventStore.target.database}.nowhere (x) FORMAT JSONCompactEachRow`;
    await expect(eventStore.writing.insert(insert, "[1]\n")).rejects.toBeInstanceOf(TransportError);
    await expect(eventStore.writing.command("NOT SQL")).rejects.toBeInstanceOf(TransportError);
    await expect(eventStore.reading.rows("SELECT nothing")).rejects.toBeInstanceOf(UnavailableError);
    await eventStore.probe.check();
  });

  test("the probe does not wait behind what is read", async () => {
    const ended: string[] = [];
    const noted = async (what: string, call: Promise<unknown>) => {
      await call;
      ended.push(what);
    };
    const reads = Array.from({ length: 8 }, () => noted("read", eventStore.reading.rows("SELECT sleep(0.3)")));
    await Promise.all([...reads, noted("probe", eventStore.probe.check())]);
    expect(ended.indexOf("probe")).toBeLessThan(4);
  });

  async function count(table: "events" | "jobs", tenantId: string): Promise<unknown> {
    const sql = `SELECT count() FROM ${eventStore.target.database}.${table} WHERE tenant_id = '${tenantId}' SETTINGS output_format_json_quote_64bit_integers = 0`;
    return (await eventStore.reading.rows(sql))[0]?.[0];
  }
});

test("a call that is not answered in time is given up, one queued behind it as well, and the next is answered", async () => {
  const hasty = new ClickHouse({ client: engine.server.writer, clock: systemClock, timeoutMs: 100 });
  const patient = new ClickHouse({ client: engine.server.writer, clock: systemClock, timeoutMs: 20_000 });
  const { database } = (await engine.eventStore("conform")).target;
  // More than there are connections, so that other queries wait.
  const slow = Array.from({ length: 20 }, () => hasty.rows("SELECT sleep(1)"));
  const givenUp = await Promise.allSettled([
    ...slow,
    hasty.insert(`INSERT INTO ${database}.migrations (version, name) FORMAT JSONCompactEachRow`, '[99, "late"]\n'),
  ]);
  expect(givenUp).toMatchObject([
    ...slow.map(() => ({ status: "rejected", reason: expect.any(UnavailableError) })),
    { status: "rejected", reason: expect.any(TransportError) },
  ]);
  expect(await patient.rows("SELECT 1")).toEqual([[1]]);
});

test("a call to a server that is away or silent fails instead of waiting", async () => {
  const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const gone = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const gonePort = gone.port;
  gone.stop(true);
  for (const port of [silent.port, gonePort]) {
    const server = connectClickHouse({ url: `http://127.0.0.1:${port}`, user: "default", password: "" });
    const over = { clock: systemClock, timeoutMs: 200 };
    const writing = new ClickHouse({ client: server.writer, ...over });
    const reading = new ClickHouse({ client: server.reader, ...over });
    await expect(writing.insert("INSERT INTO t FORMAT TSV", "1\n")).rejects.toBeInstanceOf(TransportError);
    await expect(reading.rows("SELECT 1")).rejects.toBeInstanceOf(UnavailableError);
    await server.close();
  }
  silent.stop(true);
});
