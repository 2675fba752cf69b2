import { afterAll, beforeAll, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { Recorder } from "../../../src/engine/recorder/recorder.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { startEngine, type TestEventStore } from "../../support/clickhouse-event-store.ts";
import { expectBalance } from "../../support/event-store-checker.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { sendJobs } from "./queue-work.ts";

const SHARDS = 2;
const JOBS = 300;
const tenants = [
  { tenantId: "acme", shard: 0 },
  { tenantId: "globex", shard: 1 },
] as const;

const telemetry = new QuietTelemetry();
const ports = { clock: systemClock, random: systemRandom, telemetry };
let engine: Awaited<ReturnType<typeof startEngine>>;
let eventStore: TestEventStore;
let redis: RedisServer;
let queue: RedisQueue;

beforeAll(async () => {
  engine = await startEngine();
  eventStore = await engine.eventStore("copied");
  redis = await startRedis();
  queue = new RedisQueue({ channels: CHANNELS, address: { kind: "socket", path: redis.path }, ...ports });
  await queue.start();
});
afterAll(async () => {
  await queue.stop();
  await redis.stop();
  await engine.stop();
});

test("every settlement in Redis is in ClickHouse once and unchanged, even after Redis was killed", async () => {
  const recorder = new Recorder({ queue, eventStore: eventStore.writer, ...ports, owner: "r1", shards: SHARDS });
  recorder.start();
  const ids = new Map<string, string[]>();
  for (const [n, tenant] of tenants.entries()) {
    ids.set(tenant.tenantId, await sendJobs(queue, tenant, JOBS));
    if (n === 0) {
      await redis.kill();
      await redis.restart();
    }
  }
  await eventually(
    "everything is recorded",
    async () => {
      const rows = await eventStore.reading.rows("SELECT count() FROM copied.jobs");
      return Number(rows[0]?.[0]) >= JOBS * tenants.length;
    },
    90_000,
  );
  await recorder.stop();
  for (const tenant of tenants) {
    const stored = await eventStore.reading.rows(
      `SELECT job_id FROM copied.events WHERE tenant_id = '${tenant.tenantId}'`,
    );
    expect(stored.map(([jobId]) => String(jobId)).toSorted()).toEqual((ids.get(tenant.tenantId) ?? []).toSorted());
    for (const jobId of ids.get(tenant.tenantId)?.slice(0, 3) ?? []) {
      const told = await queue.job(tenant, jobId);
      expect(told).not.toBeNull();
      expect(await eventStore.reader.job(tenant.tenantId, jobId)).toEqual(told);
    }
  }
  await expectBalance(eventStore.reading, "copied");
  expect(await eventStore.reading.rows("SELECT DISTINCT template FROM copied.jobs")).toEqual([["welcome"]]);
  expect(await redis.client.xlen("wb:{s00}:outbox")).toBe(0);
}, 300_000);
