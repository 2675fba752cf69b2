import { afterAll, beforeAll, expect, test } from "bun:test";
import { createWriteStream, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import { ClickHouse } from "../../src/events/clickhouse.ts";
import { migrateEventStore } from "../../src/events/schema/migrate-event-store.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { eventually } from "../support/eventually.ts";
import { openClickHouse } from "../support/private-clickhouse.ts";
import { startWaybill, temporaryHome, type Waybill } from "../support/waybill.ts";

/** As lines they come to 380 MB, which is more than the process may grow by. */
const EVENTS = 2_000_000;
/** The growth that a process is allowed meanwhile: its buffers and the engine's caches, measured at 190 MB. */
const GROWTH_MB_MAX = 300;
/**
 * Read pieces wait for the garbage collector, for as long as the machine has memory: up to 520 MB of them on one with
 * 24 GB. The server assumes a machine of this size, so that only referenced memory counts.
 */
const SMALL_MACHINE = { BUN_JSC_forceRAMSize: String(500_000_000) };
const OPERATOR_TOKEN = "operator-token-of-this-test";
const FIRST = firstEventIdAt(Date.UTC(2026, 9, 1));
/** A millisecond, so that all lie within an hour. */
const STEP = 4096;

let home: Awaited<ReturnType<typeof temporaryHome>>;
let waybill: Waybill;

beforeAll(async () => {
  home = await temporaryHome();
  const chdb = await openClickHouse(join(home.path, "clickhouse"));
  const clickhouse = new ClickHouse({ client: chdb.writer, clock: systemClock, timeoutMs: 100_000 });
  await migrateEventStore(clickhouse, { database: "waybill", cluster: null });
  await clickhouse.command(`INSERT INTO waybill.events (tenant_id, event_id, job_id, channel, event_type, result)
SELECT concat('t', toString(number % 200)), ${FIRST} + number * ${STEP}, generateUUIDv7(number), 1 + number % 3, 1 + number % 9, '{}'
FROM numbers(${EVENTS})`);
  await chdb.close();
  waybill = await startWaybill(home.path, { OPERATOR_TOKEN, ...SMALL_MACHINE });
}, 300_000);

afterAll(async () => {
  await waybill.kill();
  await home.remove();
}, 90_000);

function ask(format: string, init: RequestInit = {}): Promise<Response> {
  const path = `/dash/api/export?from=2026-10-01&to=2026-10-31&format=${format}`;
  return fetch(`${waybill.url}${path}`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` }, ...init });
}

function residentMb(): number {
  const status = readFileSync(`/proc/${waybill.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

test("a server exports millions of events, each once, without loading them into memory", async () => {
  const beforeMb = residentMb();
  let peakMb = 0;
  let lines = 0;
  // Counted, because millions of calls of `expect` take longer than the export.
  let disordered = 0;
  let steps = 0;
  let last = "";
  let rest = "";
  const answer = await ask("ndjson");
  if (answer.body === null) throw new Error("there is no answer");
  const decoder = new TextDecoder();
  for await (const chunk of answer.body) {
    const texts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = texts.pop() ?? "";
    for (const text of texts) {
      const [, tenant = "", id = ""] = /^\{"tenant_id":"(t\d+)","event_id":(\d+),/.exec(text) ?? [];
      const key = `${tenant} ${id}`;
      // Ids have the same length here, so texts sort in their order: no event comes twice.
      if (key <= last) disordered += 1;
      last = key;
      lines += 1;
      steps += (Number(id) - FIRST) / STEP;
    }
    peakMb = Math.max(peakMb, residentMb());
  }
  expect([lines, disordered, rest]).toEqual([EVENTS, 0, ""]);
  expect(steps).toBe((EVENTS * (EVENTS - 1)) / 2);
  process.stderr.write(`resident: ${Math.round(beforeMb)} MB before, ${Math.round(peakMb)} MB at most\n`);
  expect(peakMb - beforeMb).toBeLessThan(GROWTH_MB_MAX);
}, 300_000);

test("a client that disconnects frees its place at once, and the next one's Parquet file holds every event", async () => {
  const caller = new AbortController();
  const first = await ask("ndjson", { signal: caller.signal });
  await first.body?.getReader().read();
  expect((await ask("csv")).status).toBe(429);
  caller.abort();
  let answer = await ask("parquet");
  await eventually("there is room", async () => {
    if (answer.status === 429) answer = await ask("parquet");
    return answer.status === 200;
  });
  const another = join(home.path, "another");
  await mkdir(another);
  // In the folder of the engine that reads it.
  const path = join(another, "events.parquet");
  const file = createWriteStream(path);
  if (answer.body === null) throw new Error("there is no answer");
  for await (const chunk of answer.body) file.write(chunk);
  await finished(file.end());
  const chdb = await openClickHouse(another);
  const reading = new ClickHouse({ client: chdb.reader, clock: systemClock, timeoutMs: 20_000 });
  const rows = await reading.rows(`SELECT count(), sum(intDiv(event_id - ${FIRST}, ${STEP})), uniqExact(event_id),
  toString(min(created_at)), any(toTypeName(job_id)) FROM file('${path}', Parquet)`);
  await chdb.close();
  const [count, sum, different, since, type] = rows[0] ?? [];
  expect([Number(count), Number(sum), Number(different)]).toEqual([EVENTS, (EVENTS * (EVENTS - 1)) / 2, EVENTS]);
  expect([String(since), String(type)]).toEqual(["2026-10-01 00:00:00.000", "String"]);
}, 300_000);
