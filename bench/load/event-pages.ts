import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { type EventType, firstEventIdAt } from "../../src/domain/jobs/event.ts";
import type { EventQuery, StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import type { ChannelName } from "../../src/domain/jobs/job.ts";
import { eventIdAt, storedEventRow } from "../../test/engine/recorder/event-store-rows.ts";
import { startEngine, type TestEventStore } from "../../test/support/clickhouse-event-store.ts";
import { createPostgres } from "../../test/support/postgres.ts";
import { fillEvents, MONTH } from "./event-data.ts";
import { type LatencySummary, round, summarise } from "./latency.ts";

export interface PageOptions {
  readonly events: number;
  /** Reads of each kind. */
  readonly rounds: number;
  /** Whether PostgreSQL gets the same rows. */
  readonly withPostgres: boolean;
}

export interface PageReport {
  readonly events: number;
  readonly fillSeconds: number;
  /** Thousands of events per second through the recorder's own writer, in batches of 10,000. */
  readonly ingestThousandsPerSecond: number;
  readonly bytesPerEvent: Readonly<Record<string, number>>;
  readonly parts: number;
  readonly pages: readonly PageRow[];
}

export interface PageRow {
  readonly filter: string;
  readonly depth: string;
  readonly waybill: LatencySummary;
  /** The same page by OFFSET on the same table, if it is not the first page. */
  readonly offset: LatencySummary | null;
  readonly postgres: LatencySummary | null;
}

const DATABASE = "bench";
const PAGE = 100;
/** The largest tenant (a tenth of all jobs), a medium and a small one. */
const ASKED = ["t1", "t30", "t700"] as const;
const FILTERS: readonly {
  readonly name: string;
  readonly channel: ChannelName | null;
  readonly type: EventType | null;
}[] = [
  { name: "none", channel: null, type: null },
  { name: "channel=whatsapp (28 %)", channel: "whatsapp", type: null },
  { name: "channel=wallet (0.9 %)", channel: "wallet", type: null },
  { name: "event_type=delivered", channel: null, type: "delivered" },
  { name: "event_type=bounced (0.2 %)", channel: null, type: "bounced" },
  { name: "event_type=complained (0.006 %)", channel: null, type: "complained" },
  { name: "email, failed", channel: "email", type: "failed" },
];
/** Where in the month a page starts, counted from its end. */
const DEPTHS = [
  { name: "first page", share: 0 },
  { name: "middle", share: 0.5 },
  { name: "end of the window", share: 0.99 },
] as const;

/** Pages of a month of events by filter and depth, read by the production reader from a private ClickHouse server. */
export async function measurePages(options: PageOptions): Promise<PageReport> {
  const engine = await startEngine();
  try {
    const eventStore = await engine.eventStore(DATABASE);
    const ingest = await ingestRate(await engine.eventStore(`${DATABASE}_ingest`));
    const begunMs = performance.now();
    const events = await fillEvents(eventStore.writing, DATABASE, options.events);
    const fillSeconds = round((performance.now() - begunMs) / 1000, 1);
    await mergesToEnd(eventStore);
    const postgres = options.withPostgres ? await copyToPostgres(eventStore) : null;
    try {
      const pages = await readPages(eventStore, postgres?.sql ?? null, options.rounds);
      const sizes = await readSizes(eventStore, events);
      if (postgres !== null) sizes.bytes["PostgreSQL"] = round((await postgres.bytes()) / events, 1);
      return {
        events,
        fillSeconds,
        ingestThousandsPerSecond: ingest,
        bytesPerEvent: sizes.bytes,
        parts: sizes.parts,
        pages,
      };
    } finally {
      await postgres?.remove();
    }
  } finally {
    await engine.stop();
  }
}

async function ingestRate({ writer }: TestEventStore): Promise<number> {
  const batches = Array.from({ length: 30 }, (_, at) =>
    Array.from({ length: 10_000 }, (_, n): StoredEventRow => {
      const type = n % 2 === 0 ? "sent" : "delivered";
      const finished = type === "sent" ? ({ status: "success", attempts: 1, result: {} } as const) : null;
      return storedEventRow(eventIdAt(at * 10_000 + n), { tenantId: `t${n % 200}`, type, finished });
    }),
  );
  const begunMs = performance.now();
  for (const [at, rows] of batches.entries()) await writer.write(`ingest:${at}`, rows);
  return round((batches.length * 10_000) / (performance.now() - begunMs), 0);
}

/** Merges as ClickHouse does over the weeks: a past month into one part, the current one into several. */
async function mergesToEnd({ reading, writing }: TestEventStore): Promise<void> {
  const over = await reading.rows(
    `SELECT DISTINCT table, partition FROM system.parts WHERE database = '${DATABASE}' AND active
     AND table IN ('events', 'events_by_type') AND partition < toString(toYYYYMM(now()))`,
  );
  for (const [table, partition] of over) {
    await writing.command(`OPTIMIZE TABLE ${DATABASE}.${String(table)} PARTITION ${String(partition)} FINAL`);
  }
  for (let quiet = 0; quiet < 3; ) {
    const [[merges] = []] = await reading.rows(`SELECT count() FROM system.merges WHERE database = '${DATABASE}'`);
    quiet = Number(merges) === 0 ? quiet + 1 : 0;
    await Bun.sleep(500);
  }
}

async function readPages(
  eventStore: TestEventStore,
  postgres: SQL | null,
  rounds: number,
): Promise<readonly PageRow[]> {
  const from = firstEventIdAt(MONTH.startMs);
  const to = firstEventIdAt(MONTH.startMs + MONTH.lengthMs);
  const kinds = FILTERS.flatMap((filter) => DEPTHS.map((depth) => ({ filter, depth })));
  const taken = kinds.map(() => ({ waybill: [] as number[], offset: [] as number[], postgres: [] as number[] }));
  const offsets = await rowsBefore(eventStore, from, to);
  for (let at = 0; at < rounds * ASKED.length; at += 1) {
    const tenantId = ASKED[at % ASKED.length] ?? ASKED[0];
    for (const [n, { filter, depth }] of kinds.entries()) {
      // A different position every time, so no page is read twice.
      const share = Math.min(0.999, depth.share + (at / (rounds * ASKED.length)) * 0.009);
      const end = Math.round(to - share * (to - from));
      const query = {
        tenantId,
        fromEventId: from,
        toEventId: end,
        channel: filter.channel,
        type: filter.type,
        limit: PAGE,
      };
      const into = taken[n];
      if (into === undefined) continue;
      into.waybill.push(await timed(() => eventStore.reader.page(query)));
      if (filter.name === "none" && depth.share > 0) {
        const skip = Math.round(share * (offsets.get(tenantId) ?? 0));
        into.offset.push(await timed(() => eventStore.reading.rows(offsetPage({ ...query, toEventId: to }, skip))));
      }
      if (postgres !== null) into.postgres.push(await timed(() => postgres.unsafe(postgresPage(query))));
    }
  }
  return kinds.map(({ filter, depth }, n) => ({
    filter: filter.name,
    depth: depth.name,
    waybill: summarise(taken[n]?.waybill ?? []),
    offset: summariseSome(taken[n]?.offset ?? []),
    postgres: summariseSome(taken[n]?.postgres ?? []),
  }));
}

function summariseSome(latenciesMs: readonly number[]): LatencySummary | null {
  return latenciesMs.length === 0 ? null : summarise(latenciesMs);
}

async function timed(work: () => PromiseLike<unknown>): Promise<number> {
  const begunMs = performance.now();
  await work();
  return performance.now() - begunMs;
}

async function rowsBefore({ reading }: TestEventStore, from: number, to: number): Promise<ReadonlyMap<string, number>> {
  const rows = await reading.rows(
    `SELECT tenant_id, count() FROM ${DATABASE}.events WHERE tenant_id IN (${ASKED.map((id) => `'${id}'`).join(", ")})
     AND event_id >= ${from} AND event_id < ${to} AND channel IN ('email', 'whatsapp') GROUP BY tenant_id`,
  );
  return new Map(rows.map(([tenantId, count]) => [String(tenantId), Number(count)]));
}

function offsetPage({ tenantId, fromEventId, toEventId }: EventQuery, skip: number): string {
  return `SELECT event_id, event_type, result, job_id, channel FROM ${DATABASE}.events
WHERE tenant_id = '${tenantId}' AND event_id >= ${fromEventId} AND event_id < ${toEventId} AND channel IN ('email', 'whatsapp')
ORDER BY tenant_id DESC, event_id DESC LIMIT ${PAGE + 1} OFFSET ${skip} SETTINGS max_threads = 1`;
}

function postgresPage({ tenantId, fromEventId, toEventId, channel, type }: EventQuery): string {
  const channels = channel === null ? "channel IN ('email', 'whatsapp')" : `channel = '${channel}'`;
  return `SELECT event_id, event_type, result, job_id, channel FROM events
WHERE tenant_id = '${tenantId}' AND event_id >= ${fromEventId} AND event_id < ${toEventId} AND ${channels}
${type === null ? "" : `AND event_type = '${type}'`} ORDER BY event_id DESC LIMIT ${PAGE + 1}`;
}

/** Bytes on disk per event, by table; the sum of all tables as `all`. */
async function readSizes({ reading }: TestEventStore, events: number) {
  const rows = await reading.rows(
    `SELECT table, sum(bytes_on_disk), count() FROM system.parts WHERE database = '${DATABASE}' AND active GROUP BY table`,
  );
  const bytes: Record<string, number> = {};
  for (const [table, size] of rows) bytes[String(table)] = round(Number(size) / events, 2);
  bytes["all"] = round(rows.reduce((sum, [, size]) => sum + Number(size), 0) / events, 2);
  return { bytes, parts: Number(rows.find(([table]) => table === "events")?.[2]) };
}

/** The same rows in PostgreSQL with the usual indexes: by tenant and id, and by job. */
async function copyToPostgres({ writing }: TestEventStore) {
  const server = await createPostgres();
  const folder = await mkdtemp(join(tmpdir(), "waybill-bench-"));
  const sql = new SQL(server.url, { max: 1 });
  const remove = async () => {
    await sql.close();
    await server.remove();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const file = join(folder, "events.tsv");
    const columns = "tenant_id, event_id, job_id, channel, event_type, result";
    const rows = writing.stream(`SELECT ${columns} FROM ${DATABASE}.events FORMAT TSV`, new AbortController().signal);
    const output = Bun.file(file).writer();
    for await (const chunk of rows) {
      void output.write(chunk);
      await output.flush();
    }
    await output.end();
    await Bun.$`chmod 755 ${folder} && chmod 644 ${file}`.quiet();
    await sql`CREATE TABLE events (tenant_id text NOT NULL, event_id bigint NOT NULL, job_id uuid NOT NULL,
      channel text NOT NULL, event_type text NOT NULL, result text NOT NULL)`;
    await sql.unsafe(`COPY events FROM '${file}'`);
    await sql`CREATE INDEX ON events (tenant_id, event_id)`;
    await sql`CREATE INDEX ON events (tenant_id, job_id)`;
    await sql`VACUUM ANALYZE events`;
    const bytes = async () => {
      const [row] = await sql`SELECT pg_total_relation_size('events')::float8 AS size`;
      return Number(row.size);
    };
    return { sql, bytes, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
