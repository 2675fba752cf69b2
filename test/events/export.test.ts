import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { UnavailableError } from "../../src/domain/errors.ts";
import { ClickHouse, connectClickHouse } from "../../src/events/clickhouse.ts";
import { ClickHouseEventExport } from "../../src/events/clickhouse-event-export.ts";
import type { ExportFormat, ExportQuery } from "../../src/events/export-endpoint.ts";
import { eventLimits } from "../../src/events/limits.ts";
import { ParquetFiles, removeExports } from "../../src/events/parquet-files.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { eventIdAt, storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startChdb, type TestEventStore } from "../support/chdb-event-store.ts";
import { eventually } from "../support/eventually.ts";

const HOOK_MS = 60_000;
const ROWS = 25_000;
const COLUMNS = ["tenant_id", "event_id", "created_at", "job_id", "channel", "event_type", "result"];

let engine: Awaited<ReturnType<typeof startChdb>>;
let eventStore: TestEventStore;
let folder: string;
/** The embedded form, whose Parquet comes by way of a file, and the one of a server, which streams it. */
let exports: Readonly<Record<"embedded" | "server", ClickHouseEventExport>>;

beforeAll(async () => {
  engine = await startChdb();
  eventStore = await engine.eventStore("exported", "process");
  const { exporting } = await engine.eventStore("exported", "http");
  folder = await mkdtemp(join(tmpdir(), "waybill-it's-an-export-"));
  const files = new ParquetFiles({ writing: eventStore.exporting, beside: eventStore.reading }, join(folder, "export"));
  exports = {
    embedded: new ClickHouseEventExport(eventStore.exporting, eventStore.target, files),
    server: new ClickHouseEventExport(exporting, eventStore.target, null),
  };
  await fill();
}, HOOK_MS);

afterAll(async () => {
  await engine.stop();
  await rm(folder, { recursive: true, force: true });
}, HOOK_MS);

/** More than one piece of a tenant, tenants of one event, every channel, and results that are awkward to write. */
async function fill(): Promise<void> {
  await eventStore.writing.command(`INSERT INTO exported.events (tenant_id, event_id, job_id, channel, event_type, result)
SELECT ['big', 'big-2', 'a', '0'][1 + (number % 10 = 0) + (number % 1000 = 7) + 2 * (number = 5)] AS tenant_id,
  ${eventIdAt(0)} + number, generateUUIDv7(number), 1 + number % 3, 1 + number % 9, '{}' FROM numbers(${ROWS})`);
  const results = [{ error: 'a "quote", a comma\nand a line; é \u2028 \\ \t 名' }, { url: "https://a.test/?q=1,2" }];
  const rows = results.map((result, n) =>
    storedEventRow(eventIdAt(100_000 + n), { tenantId: "zed", type: "failed", result }),
  );
  await eventStore.writer.write("s1:awkward", rows);
  await eventStore.writing.command(
    `INSERT INTO exported.events (tenant_id, event_id, job_id, channel, event_type, result)
VALUES ('zed', ${eventIdAt(200_000)}, generateUUIDv7(), 1, 1, '{"a":\n1}'), ('zed', ${eventIdAt(200_001)}, generateUUIDv7(), 1, 1, 'broken\n')`,
  );
}

const ALL = { tenantId: null, fromEventId: 0, toEventId: Number.MAX_SAFE_INTEGER } as const;

async function read(form: keyof typeof exports, query: ExportQuery): Promise<Buffer> {
  const chunks = await exports[form].open(query, new AbortController().signal);
  return Buffer.concat(await Array.fromAsync(chunks));
}

const stored = (where = "1") =>
  eventStore.reading.rows(`SELECT tenant_id, event_id, concat(replaceOne(toString(created_at), ' ', 'T'), 'Z'), toString(job_id),
  toString(channel), toString(event_type), result FROM exported.events WHERE ${where} ORDER BY tenant_id, event_id`);

/** What a result is in a file: the object, or an empty one where it was damaged. */
function repaired(rows: readonly (readonly unknown[])[]): readonly (readonly unknown[])[] {
  return rows.map((row) => row.with(6, row[6] === "broken\n" ? {} : JSON.parse(String(row[6]))));
}

function parsedLines(bytes: Buffer): readonly (readonly unknown[])[] {
  const lines = bytes.toString().split("\n");
  expect(lines.pop()).toBe("");
  return lines.map((line) => {
    const event = JSON.parse(line);
    expect(Object.keys(event)).toEqual(COLUMNS);
    return Object.values(event);
  });
}

const keyOf = ([tenantId, eventId]: readonly unknown[]) => `${String(tenantId)} ${String(eventId)}`;

describe("lines", () => {
  test("are the table's events, each once, by tenant and id", async () => {
    const rows = parsedLines(await read("embedded", { ...ALL, format: "ndjson" }));
    expect(rows).toHaveLength(ROWS + 4);
    expect(rows).toEqual(repaired(await stored()));
    expect(await read("server", { ...ALL, format: "ndjson" })).toEqual(
      await read("embedded", { ...ALL, format: "ndjson" }),
    );
  }, 90_000);

  test("as CSV are read back as the same rows", async () => {
    const bytes = await read("embedded", { ...ALL, format: "csv" });
    await writeFile(join(folder, "events.csv"), bytes);
    const path = join(folder, "events.csv").replaceAll("'", "\\'");
    const types = COLUMNS.map((name) => `${name} ${name === "event_id" ? "UInt64" : "String"}`).join(", ");
    const rows = await eventStore.reading.rows(`SELECT * FROM file('${path}', CSVWithNames, '${types}')`);
    expect(repaired(rows)).toEqual(repaired(await stored()));
  }, 90_000);

  test("of a tenant and a range hold exactly those events", async () => {
    const [from, to] = [eventIdAt(0) + 11_000, eventIdAt(0) + 24_000];
    const query = { tenantId: "big", fromEventId: from, toEventId: to } as const;
    const where = `tenant_id = 'big' AND event_id >= ${from} AND event_id < ${to}`;
    const expected = repaired(await stored(where));
    expect(expected.length).toBeGreaterThan(eventLimits.exportPieceRowsMax);
    expect(parsedLines(await read("embedded", { ...query, format: "ndjson" }))).toEqual(expected);
    expect(await read("embedded", { ...query, tenantId: "nobody", format: "ndjson" })).toEqual(Buffer.alloc(0));
    const empty = await read("embedded", { ...query, tenantId: "nobody", format: "csv" });
    expect(empty.toString()).toBe(`${COLUMNS.join(",")}\n`);
  }, 90_000);

  test("hold each event once while others are written before and behind the place that is read", async () => {
    const chunks = await exports.embedded.open({ ...ALL, format: "ndjson" }, new AbortController().signal);
    const before = repaired(await stored());
    const read: Buffer[] = [];
    let n = 0;
    for await (const chunk of chunks) {
      read.push(Buffer.from(chunk));
      n += 1;
      const rows = ["a", "big", "zed"].map((tenantId) => storedEventRow(eventIdAt(300_000 + n), { tenantId }));
      await eventStore.writer.write(`s1:meanwhile-${n}`, rows);
    }
    const ids = parsedLines(Buffer.concat(read)).map(keyOf);
    expect(new Set(ids).size).toBe(ids.length);
    const known = new Set(ids);
    expect(before.filter((row) => !known.has(keyOf(row)))).toEqual([]);
    await eventStore.writing.command(
      `ALTER TABLE exported.events DELETE WHERE event_id >= ${eventIdAt(300_000)} SETTINGS mutations_sync = 1`,
    );
  }, 90_000);
});

test("an export that is given up between two pieces is an incomplete file", async () => {
  const caller = new AbortController();
  const chunks = await exports.embedded.open({ ...ALL, format: "ndjson" }, caller.signal);
  expect((await chunks.next()).done).toBe(false);
  caller.abort();
  await expect(chunks.next()).rejects.toBeInstanceOf(UnavailableError);
});

describe("Parquet", () => {
  test.each(["embedded", "server"] as const)(
    "that is made %s is read back as the table's events",
    async (form) => {
      const path = join(folder, `${form}.parquet`);
      await writeFile(path, await read(form, { ...ALL, format: "parquet" }));
      const rows = await eventStore.reading.rows(
        `SELECT tenant_id, event_id, concat(replaceOne(toString(created_at), ' ', 'T'), 'Z'), job_id, channel, event_type, result
FROM file('${path.replaceAll("'", "\\'")}', Parquet)`,
      );
      expect(rows).toEqual(await stored());
      expect(readdirSync(join(folder, "export"))).toEqual([]);
    },
    90_000,
  );

  test("of a tenant and a range holds exactly those events", async () => {
    const [from, to] = [eventIdAt(0) + 3, eventIdAt(0) + 999];
    const path = join(folder, "part.parquet");
    const query = { tenantId: "big-2", fromEventId: from, toEventId: to, format: "parquet" } as const;
    await writeFile(path, await read("embedded", query));
    const ids = await eventStore.reading.rows(`SELECT event_id FROM file('${path.replaceAll("'", "\\'")}', Parquet)`);
    const where = `tenant_id = 'big-2' AND event_id >= ${from} AND event_id < ${to}`;
    expect(ids).toEqual((await stored(where)).map((row) => row.slice(1, 2)));
  });

  test("is closed when it is given up before anything of it was taken", async () => {
    const held = () =>
      readdirSync("/proc/self/fd").filter((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`).includes(".parquet");
        } catch {
          return false;
        }
      }).length;
    const chunks = await exports.embedded.open({ ...ALL, format: "parquet" }, new AbortController().signal);
    expect(held()).toBe(1);
    await chunks.return();
    expect(held()).toBe(0);
  });

  test("leaves no file behind after a crash, when it is given up, or when it cannot be written", async () => {
    const left = join(folder, "left");
    await mkdir(left);
    await writeFile(join(left, "7.parquet"), "half of it");
    const files = new ParquetFiles({ writing: eventStore.exporting, beside: eventStore.reading }, left);
    const broken = { select: "SELECT throwIf(number = 200000) FROM numbers(300000)", settings: "max_threads = 1" };
    const signal = new AbortController().signal;
    await expect(files.chunks(broken, signal).next()).rejects.toBeInstanceOf(UnavailableError);
    expect(readdirSync(left)).toEqual([]);
    const slow = { select: "SELECT sum(sipHash64(number)) FROM numbers(100000000000)", settings: "max_threads = 1" };
    const caller = new AbortController();
    const next = files.chunks(slow, caller.signal).next();
    await eventually("it is running", async () => {
      const [row] = await eventStore.reading.rows(
        "SELECT count() FROM system.processes WHERE query LIKE 'SELECT sum(sip%'",
      );
      return Number(row?.[0]) === 1;
    });
    caller.abort();
    await expect(next).rejects.toBeInstanceOf(UnavailableError);
    expect(readdirSync(left)).toEqual([]);
  }, 90_000);
});

test("what processes of a former start left of exports is removed, and nothing else", async () => {
  const home = join(folder, "home");
  for (const name of ["export", "export-api-7", "exported", "postgres"]) {
    await mkdir(join(home, name), { recursive: true });
    await writeFile(join(home, name, "1.parquet"), "half of it");
  }
  await removeExports(home);
  expect(readdirSync(home).toSorted()).toEqual(["exported", "postgres"]);
});

test("a folder for Parquet files that could not be prepared is tried again by the next export", async () => {
  const blocked = join(folder, "blocked");
  await writeFile(blocked, "where the folder should be");
  const files = new ParquetFiles({ writing: eventStore.exporting, beside: eventStore.reading }, blocked);
  const one = { select: "SELECT 1 AS one", settings: "max_threads = 1" };
  const signal = new AbortController().signal;
  const both = await Promise.allSettled([files.chunks(one, signal).next(), files.chunks(one, signal).next()]);
  const refused = { status: "rejected" as const, reason: expect.any(UnavailableError) };
  expect(both).toEqual([refused, refused]);
  await rm(blocked);
  const chunks = await Array.fromAsync(files.chunks(one, signal));
  expect(Buffer.concat(chunks).subarray(0, 4).toString()).toBe("PAR1");
});

test("an answer that does not end with a whole row is an incomplete file", async () => {
  const texts: Readonly<Record<ExportFormat, string>> = {
    ndjson: '{"tenant_id":"a","event_id":1,"created_at":"","result":{}}\nCode: 241. DB::Exception: memory\n',
    csv: 'a,1,,,,,"{}"\nCode: 241. DB::Exception: memory\n',
    parquet: "PAR1 and so on, Code: 241. DB::Exception: memory\n",
  };
  for (const format of ["ndjson", "csv", "parquet"] as const) {
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(texts[format]) });
    const away = connectClickHouse({ url: server.url.href, user: "default", password: "" });
    const asking = new ClickHouse({ client: away.exporter, clock: systemClock, timeoutMs: 5_000 });
    const given = new ClickHouseEventExport(asking, eventStore.target, null);
    const reading = async () => {
      const chunks = await given.open({ ...ALL, format }, new AbortController().signal);
      return await Array.fromAsync(chunks);
    };
    await expect(reading()).rejects.toBeInstanceOf(UnavailableError);
    await away.close();
    await server.stop(true);
  }
}, 90_000);
