import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import type { StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import { eventIdAt, storedEventRow } from "../../test/engine/recorder/event-store-rows.ts";
import { startEngine, type TestEventStore } from "../../test/support/clickhouse-event-store.ts";
import { createSpan, fillEvents, type Span } from "./event-data.ts";
import { type LatencySummary, round, summarise } from "./latency.ts";

export interface HistoryReport {
  readonly days: number;
  readonly events: number;
  /** Events per second through the recorder's own writer, in batches of a thousand. */
  readonly recordedPerSecond: number;
  /** CPU of this process per event, engine included. */
  readonly recordMicros: number;
  /** A tenant's page of 100, out of all its days. */
  readonly pageMs: LatencySummary;
  /** Bytes on disk: per event in the event tables, per job in the table of the jobs' last states. */
  readonly bytesPerEvent: number;
  readonly bytesPerJob: number;
}

export interface HistoryLoad {
  readonly days: readonly number[];
  readonly eventsPerDay: number;
  readonly rounds: number;
}

const BATCH = 1_000;
const BATCHES = 10;
const PAGES = 30;
const PAGE = 100;
const ASKED = ["t1", "t30", "t700"] as const;

/** Recording and reading with a short and a long history, alternately. */
export async function measureHistory({ days, eventsPerDay, rounds }: HistoryLoad): Promise<readonly HistoryReport[]> {
  const engine = await startEngine();
  try {
    const histories: History[] = [];
    for (const count of days) {
      const name = `history_${count}`;
      const eventStore = await engine.eventStore(name);
      const span = createSpan(count);
      const events = await fillEvents(eventStore.writing, name, eventsPerDay * count, span);
      histories.push({ days: count, eventStore, span, events, perSecond: [], micros: [], pagesMs: [] });
    }
    for (let i = 0; i < rounds; i += 1) {
      for (const history of histories) {
        await recordSome(history, i);
        await readSome(history, i);
      }
    }
    return await Promise.all(histories.map(buildReport));
  } finally {
    await engine.stop();
  }
}

interface History {
  readonly days: number;
  readonly eventStore: TestEventStore;
  readonly span: Span;
  readonly events: number;
  readonly perSecond: number[];
  readonly micros: number[];
  readonly pagesMs: number[];
}

async function buildReport({ days, eventStore, events, perSecond, micros, pagesMs }: History): Promise<HistoryReport> {
  const { database } = eventStore.target;
  const parts = await eventStore.reading.rows(
    `SELECT table, sum(bytes_on_disk), sum(rows) FROM system.parts WHERE database = '${database}' AND active GROUP BY table`,
  );
  const sumBytes = (wanted: (table: string) => boolean) =>
    parts.reduce((sum, [table, bytes]) => sum + (wanted(String(table)) ? Number(bytes) : 0), 0);
  const findRowCount = (table: string) => Number(parts.find(([name]) => name === table)?.[2] ?? 0);
  return {
    days,
    events,
    recordedPerSecond: round(computeMean(perSecond), 0),
    recordMicros: round(computeMean(micros), 1),
    pageMs: summarise(pagesMs),
    bytesPerEvent: round(sumBytes((table) => table !== "jobs") / findRowCount("events"), 1),
    bytesPerJob: round(sumBytes((table) => table === "jobs") / findRowCount("jobs"), 1),
  };
}

function computeMean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

async function recordSome({ eventStore, perSecond, micros }: History, turn: number): Promise<void> {
  const begunMs = performance.now();
  const cpu = process.cpuUsage();
  for (let at = 0; at < BATCHES; at += 1) {
    const first = (turn * BATCHES + at) * BATCH;
    const rows = Array.from({ length: BATCH }, (_, n): StoredEventRow => {
      const finished = { status: "success", attempts: 1, result: {} } as const;
      return storedEventRow(eventIdAt(first + n), { tenantId: `t${n % 200}`, type: "sent", finished });
    });
    await eventStore.writer.write(`bench:${first}`, rows);
  }
  const { user, system } = process.cpuUsage(cpu);
  perSecond.push((BATCHES * BATCH * 1000) / (performance.now() - begunMs));
  micros.push((user + system) / (BATCHES * BATCH));
}

async function readSome({ eventStore, span, pagesMs }: History, turn: number): Promise<void> {
  const from = firstEventIdAt(span.startMs);
  const to = firstEventIdAt(span.startMs + span.lengthMs);
  for (let at = 0; at < PAGES; at += 1) {
    const tenantId = ASKED[at % ASKED.length] ?? ASKED[0];
    // A different position every time, so no page is read twice.
    const end = Math.round(to - ((turn * PAGES + at) / 1000) * (to - from));
    const query = { tenantId, fromEventId: from, toEventId: end, channel: null, type: null, limit: PAGE };
    const begunMs = performance.now();
    await eventStore.reader.page(query);
    pagesMs.push(performance.now() - begunMs);
  }
}
