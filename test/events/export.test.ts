import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UnavailableError } from "../../src/domain/errors.ts";
import { ClickHouse, connectClickHouse } from "../../src/events/clickhouse.ts";
import { ClickHouseEventExport } from "../../src/events/clickhouse-event-export.ts";
import type { ExportFormat, ExportQuery } from "../../src/events/endpoints/export-endpoint.ts";
import { eventLimits } from "../../src/events/limits.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { removeExports } from "../../src/storage/clickhouse/left-exports.ts";
import { eventIdAt, storedEventRow } from "../engine/recorder/event-store-rows.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";
import { eventually } from "../support/eventually.ts";

const HOOK_MS = 60_000;
const ROWS = 25_000;
const COLUMNS = ["tenant_id", "event_id", "created_at", "job_id", "channel", "event_type", "result", "failure_class"];

let engine: Awaited<ReturnType<typeof startEngine>>;
let eventStore: TestEventStore;
let exports: ClickHouseEventExport;
/** A folder inside the engine's own, since it reads no files outside of that. */
let folder: string;

beforeAll(async () => {
  engine = await startEngine();
  eventStore = await engine.eventStore("exported");
  folder = join(engine.folder, "it's a folder");
  await mkdir(folder);
  exports = new ClickHouseEventExport(eventStore.exporting, eventStore.target);
  await fill();
}, HOOK_MS);

afterAll(async () => {
  await engine.stop();
}, HOOK_MS);

/** More than one piece of a tenant, tenants with one event, every channel, and results that are awkward to write. */
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

async function read(query: ExportQuery): Promise<Buffer> {
  const chunks = await exports.open(query, new AbortController().signal);
  return Buffer.concat(await Array.fromAsync(chunks));
}

const stored = (where = "1") =>
  eventStore.reading.rows(`SELECT tenant_id, event_id, concat(replaceOne(toString(created_at), ' ', 'T'), 'Z'), toString(job_id),
  toString(channel), toString(event_type), result, toString(failure_class) FROM exported.events WHERE ${where} ORDER BY tenant_id, event_id`);

/** The results as a file has them: the object, or an empty one where it was damaged. */
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

const formatKey = ([tenantId, eventId]: readonly unknown[]) => `${String(tenantId)} ${String(eventId)}`;

describe("lines", () => {
  test("are the table's events, each once, by tenant and id", async () => {
    const rows = parsedLines(await read({ ...ALL, format: "ndjson" }));
    expect(rows).toHaveLength(ROWS + 4);
    expect(rows).toEqual(repaired(await stored()));
  }, 90_000);

  test("as CSV are read back as the same rows", async () => {
    const bytes = await read({ ...ALL, format: "csv" });
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
    expect(parsedLines(await read({ ...query, format: "ndjson" }))).toEqual(expected);
    expect(await read({ ...query, tenantId: "nobody", format: "ndjson" })).toEqual(Buffer.alloc(0));
    const empty = await read({ ...query, tenantId: "nobody", format: "csv" });
    expect(empty.toString()).toBe(`${COLUMNS.join(",")}\n`);
  }, 90_000);

  test("hold each event once while others are written before and behind the place that is read", async () => {
    const chunks = await exports.open({ ...ALL, format: "ndjson" }, new AbortController().signal);
    const before = repaired(await stored());
    const read: Buffer[] = [];
    let n = 0;
    for await (const chunk of chunks) {
      read.push(Buffer.from(chunk));
      n += 1;
      const rows = ["a", "big", "zed"].map((tenantId) => storedEventRow(eventIdAt(300_000 + n), { tenantId }));
      await eventStore.writer.write(`s1:meanwhile-${n}`, rows);
    }
    const ids = parsedLines(Buffer.concat(read)).map(formatKey);
    expect(new Set(ids).size).toBe(ids.length);
    const known = new Set(ids);
    expect(before.filter((row) => !known.has(formatKey(row)))).toEqual([]);
    await eventStore.writing.command(
      `ALTER TABLE exported.events DELETE WHERE event_id >= ${eventIdAt(300_000)} SETTINGS mutations_sync = 1`,
    );
  }, 90_000);
});

test("an export that is given up between two pieces is an incomplete file", async () => {
  const caller = new AbortController();
  const chunks = await exports.open({ ...ALL, format: "ndjson" }, caller.signal);
  expect((await chunks.next()).done).toBe(false);
  caller.abort();
  await expect(chunks.next()).rejects.toBeInstanceOf(UnavailableError);
});

describe("Parquet", () => {
  test("is read back as the table's events", async () => {
    const path = join(folder, "all.parquet");
    await writeFile(path, await read({ ...ALL, format: "parquet" }));
    const rows = await eventStore.reading.rows(
      `SELECT tenant_id, event_id, concat(replaceOne(toString(created_at), ' ', 'T'), 'Z'), job_id, channel, event_type, result, failure_class
FROM file('${path.replaceAll("'", "\\'")}', Parquet)`,
    );
    expect(rows).toEqual(await stored());
  }, 90_000);

  test("of a tenant and a range holds exactly those events", async () => {
    const [from, to] = [eventIdAt(0) + 3, eventIdAt(0) + 999];
    const path = join(folder, "part.parquet");
    const query = { tenantId: "big-2", fromEventId: from, toEventId: to, format: "parquet" } as const;
    await writeFile(path, await read(query));
    const ids = await eventStore.reading.rows(`SELECT event_id FROM file('${path.replaceAll("'", "\\'")}', Parquet)`);
    const where = `tenant_id = 'big-2' AND event_id >= ${from} AND event_id < ${to}`;
    expect(ids).toEqual((await stored(where)).map((row) => row.slice(1, 2)));
  });

  test("ends in the server, too, when it is given up", async () => {
    const caller = new AbortController();
    const chunks = await exports.open({ ...ALL, format: "parquet" }, caller.signal);
    caller.abort();
    await expect(Array.fromAsync(chunks)).rejects.toBeInstanceOf(UnavailableError);
    await eventually("it has ended", async () => {
      const [row] = await eventStore.reading.rows(
        "SELECT count() FROM system.processes WHERE query LIKE '%FORMAT Parquet%' AND query NOT LIKE '%processes%'",
      );
      return Number(row?.[0]) === 0;
    });
  });
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
    const given = new ClickHouseEventExport(asking, eventStore.target);
    const reading = async () => {
      const chunks = await given.open({ ...ALL, format }, new AbortController().signal);
      return await Array.fromAsync(chunks);
    };
    await expect(reading()).rejects.toBeInstanceOf(UnavailableError);
    await away.close();
    await server.stop(true);
  }
}, 90_000);
