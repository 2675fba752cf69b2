import { afterAll, beforeAll, expect, test } from "bun:test";
import { TransportError } from "../../../src/domain/errors.ts";
import { nextEventId } from "../../../src/domain/jobs/event.ts";
import type { EventWriter, StoredEventRow } from "../../../src/domain/jobs/event-store.ts";
import { Recorder } from "../../../src/engine/recorder/recorder.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { startEngine, type TestEventStore } from "../../support/clickhouse-event-store.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { storedEventRow } from "./event-store-rows.ts";
import { lossy, MemoryRecorderQueue } from "./memory-recorder-queue.ts";

const SHARDS = 3;
const ROWS = 200;

let engine: Awaited<ReturnType<typeof startEngine>>;
let eventStore: TestEventStore;

beforeAll(async () => {
  engine = await startEngine();
  eventStore = await engine.eventStore("recorded");
});
afterAll(async () => {
  await engine.stop();
});

test("two recorders store every row once and in order through lost replies", async () => {
  const random = new SeededRandom(7);
  const queue = new MemoryRecorderQueue(systemClock, 40);
  const weather = { failing: 0.3, delayMsMax: 2 };
  const losing: EventWriter = {
    async write(token, rows, attempt) {
      const roll = random.next();
      if (roll < 0.1) throw new TransportError("lost on the way there");
      const outcome = await eventStore.writer.write(token, rows, attempt);
      if (roll < 0.4) throw new TransportError("lost on the way back");
      return outcome;
    },
  };
  const recorders = ["r1", "r2"].map((owner) => {
    const { way } = lossy(queue, systemClock, random, weather);
    const telemetry = new QuietTelemetry();
    return new Recorder({
      queue: way,
      eventStore: losing,
      clock: systemClock,
      random,
      telemetry,
      owner,
      shards: SHARDS,
    });
  });
  for (const recorder of recorders) recorder.start();

  const appended: StoredEventRow[][] = [];
  for (let shard = 0; shard < SHARDS; shard += 1) {
    const finished = { status: "success", attempts: 1, result: {} } as const;
    let eventId = 0;
    const rows = Array.from({ length: ROWS }, () => {
      eventId = nextEventId(eventId, systemClock.nowMs());
      return storedEventRow(eventId, { tenantId: `shard-${shard}`, finished });
    });
    appended.push(rows);
    for (let at = 0; at < ROWS; at += 100) queue.append(shard, rows.slice(at, at + 100));
  }
  await eventually("the outboxes are empty", () => queue.waiting() === 0, 40_000);
  weather.failing = 0;
  await Promise.all(recorders.map((recorder) => recorder.stop()));

  for (const [shard, rows] of appended.entries()) {
    const stored = await eventStore.reading.rows(
      `SELECT event_id FROM recorded.events WHERE tenant_id = 'shard-${shard}' ORDER BY event_id`,
    );
    expect(stored.map(([eventId]) => Number(eventId))).toEqual(rows.map(({ eventId }) => eventId));
    const jobs = await eventStore.reading.rows(`SELECT count() FROM recorded.jobs WHERE tenant_id = 'shard-${shard}'`);
    expect(Number(jobs[0]?.[0])).toBe(ROWS);
  }
}, 300_000);
