import { afterAll, beforeAll, expect, test } from "bun:test";
import { CHANNELS } from "../../src/app/channels.ts";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import { QUEUE_SHARE } from "../../src/domain/tenants/tenant.ts";
import { RedisQueue } from "../../src/engine/queue/redis-queue.ts";
import { Recorder } from "../../src/engine/recorder/recorder.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { sendJobs } from "../engine/recorder/queue-work.ts";
import { Front } from "../http/support/front.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";
import { eventually } from "../support/eventually.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";

const DAY_MS = 86_400_000;
const DAYS = 31;
/** Events of the days before, a third of them wallet's, which the list leaves out unless asked. */
const HISTORY = 30_000;
/** A machine that writes faster than it reads would read more with each round, endlessly. */
const WRITTEN_MAX = 20_000;
const ACME = { tenantId: "acme", shard: 0 } as const;

const telemetry = new QuietTelemetry();
const ports = { clock: systemClock, random: systemRandom, telemetry };
const firstDayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAYS * DAY_MS;
let engine: Awaited<ReturnType<typeof startEngine>>;
let eventStore: TestEventStore;
let redis: RedisServer;
let queue: RedisQueue;
let recorder: Recorder;
let front: Front;

beforeAll(async () => {
  engine = await startEngine();
  eventStore = await engine.eventStore("paged");
  redis = await startRedis();
  queue = new RedisQueue({ channels: CHANNELS, address: { kind: "socket", path: redis.path }, ...ports });
  await queue.start();
  recorder = new Recorder({ queue, eventStore: eventStore.writer, ...ports, owner: "r1", shards: 1 });
  recorder.start();
  front = await Front.start({ eventStore: eventStore.reader });
  await front.registry.putPlan({ name: "pro", requestsPerMinute: 100_000, deliveriesPerSecond: null, ...QUEUE_SHARE });
  const step = Math.floor((DAYS * DAY_MS * 4096) / HISTORY);
  await eventStore.writing.command(`INSERT INTO paged.events (tenant_id, event_id, job_id, channel, event_type, result)
SELECT 'acme', ${firstEventIdAt(firstDayMs)} + number * ${step}, generateUUIDv7(number), 1 + number % 3, 1 + number % 9, '{}'
FROM numbers(${HISTORY})`);
}, 300_000);

afterAll(async () => {
  await recorder.stop();
  await front.stop();
  await queue.stop();
  await redis.stop();
  await engine.stop();
}, 300_000);

const day = (unixMs: number) => new Date(unixMs).toISOString().slice(0, 10);

interface Page {
  readonly events: readonly { readonly event_id: number }[];
  readonly has_more: boolean;
  readonly next_cursor: number;
}

/** Returns every event of the month that is newer than `newest`, as a client does: newest first, page by page. */
async function readDownTo(newest: number): Promise<number[]> {
  const ids: number[] = [];
  for (let cursor = 0; ; ) {
    const path = `/v1/events?from=${day(firstDayMs)}&to=${day(Date.now())}&limit=500${cursor === 0 ? "" : `&cursor=${cursor}`}`;
    const answer = await fetch(`${front.url}${path}`, { headers: { "x-api-key": front.apiKey } });
    expect(answer.status).toBe(200);
    // The route's documented answer.
    const body = (await answer.json()) as Page;
    for (const { event_id } of body.events) {
      if (event_id <= newest) return ids;
      ids.push(event_id);
    }
    if (!body.has_more) return ids;
    cursor = body.next_cursor;
  }
}

async function storedIds(): Promise<number[]> {
  const rows = await eventStore.reading.rows(
    "SELECT event_id FROM paged.events WHERE channel != 'wallet' ORDER BY event_id DESC",
  );
  return rows.map(([eventId]) => Number(eventId));
}

test("a client that pages a whole month while events are written sees each of them exactly once", async () => {
  const sent: string[] = [];
  let isWriting = true;
  const writing = (async () => {
    while (isWriting && sent.length < WRITTEN_MAX) sent.push(...(await sendJobs(queue, ACME, 40)));
  })();

  const before = new Set(await storedIds());
  const seen: number[] = await readDownTo(0);
  // All events that existed when it began, each once, in order, however long it took.
  expect(seen).toEqual([...new Set(seen)].toSorted((a, b) => b - a));
  const missing = before.difference(new Set(seen));
  expect([...missing]).toEqual([]);
  expect(seen.length).toBeGreaterThanOrEqual((HISTORY * 2) / 3);

  // Then it comes back again and again for new events: none ever appears below those it has seen.
  let newest = seen[0] ?? 0;
  for (let rounds = 0; rounds < 12 || sent.length < 1_000; rounds += 1) {
    const fresh = await readDownTo(newest);
    newest = fresh[0] ?? newest;
    seen.push(...fresh);
  }
  isWriting = false;
  await writing;
  await eventually("all is recorded", async () => (await redis.client.xlen("wb:{s00}:outbox")) === 0, 30_000);
  seen.push(...(await readDownTo(newest)));
  expect(seen.length).toBe((HISTORY * 2) / 3 + sent.length);
  expect(seen.toSorted((a, b) => b - a)).toEqual(await storedIds());
}, 300_000);
