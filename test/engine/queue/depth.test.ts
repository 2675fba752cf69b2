import { expect, test } from "bun:test";
import { jobTimeMs } from "../../../src/domain/ids.ts";
import type { Series } from "../../../src/domain/telemetry.ts";
import { QueueMetrics } from "../../../src/operators/metrics/queue-metrics.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { accept, pullOne, queue, redis, sent, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

function shown(shards: number, changes: Partial<typeof queue> = {}) {
  const gauges = new Map<string, readonly Series[]>();
  let asked = 0;
  const ports = {
    statuses: queue.statuses,
    memory: () => queue.memory(),
    depth: (shard: number) => {
      asked += 1;
      return queue.depth(shard);
    },
    ...changes,
  };
  const metrics = new QueueMetrics({
    queue: ports,
    shards,
    channels: ["email", "whatsapp", "wallet"],
    clock,
    telemetry: { series: (name, values) => void gauges.set(name, values), log: () => {} },
  });
  const findGauge = (name: string, labels: Record<string, string>) =>
    gauges.get(name)?.find(([its]) => Object.entries(labels).every(([label, value]) => its[label] === value))?.[1];
  return { metrics, gauges, findGauge, asked: () => asked };
}

const clock = new ManualClock();

test("the depth of a queue names whose jobs wait, how long, and what waits elsewhere", async () => {
  const { tenant, lease } = await world("acme");
  const { shard } = tenant;
  const jobId = await accept(tenant, { payload: "x".repeat(100_000) });
  await accept(tenant);
  await accept(tenant, { channel: "whatsapp" });
  const { findGauge, gauges, metrics } = shown(shard + 1);
  await metrics.refresh();
  const at = { shard: String(shard) };
  expect(findGauge("queue_jobs", { ...at, channel: "email" })).toBe(2);
  expect(findGauge("queue_jobs", { ...at, channel: "whatsapp" })).toBe(1);
  expect(findGauge("queue_jobs", { ...at, channel: "wallet" })).toBe(0);
  expect(findGauge("tenant_queue_jobs", { tenant: "acme", channel: "email" })).toBe(2);
  const { measured } = await queue.depth(shard);
  expect(measured.find(({ channel }) => channel === "email")?.oldestMs).toBe(jobTimeMs(jobId));
  const age = findGauge("queue_oldest_age_seconds", { ...at, channel: "email" }) ?? -1;
  expect(Math.abs(age - (clock.nowMs() - jobTimeMs(jobId)) / 1000)).toBeLessThan(30);
  expect(gauges.get("queue_tenant_queues")).toContainEqual([at, 2]);
  expect(findGauge("redis_memory_used_bytes", {})).toBeGreaterThan(100_000);

  // A pulled job stays in the depth until it is settled; a retry waits elsewhere.
  const jobs = await pullOne(lease, "acme");
  expect((await queue.depth(shard)).measured.find(({ channel }) => channel === "email")?.jobs).toBe(2);
  const [job, other] = jobs;
  if (job === undefined || other === undefined) throw new Error("nothing was pulled");
  await queue.settle(lease, [{ kind: "retry", job, delayMs: 60_000, status: "running" }, sent(other)], null);
  const depth = await queue.depth(shard);
  expect([depth.parked, depth.measured.map(({ channel }) => channel)]).toEqual([1, ["whatsapp"]]);
  expect(Math.abs(Date.now() - (depth.oldestEventMs ?? 0))).toBeLessThan(30_000);
});

test("a shard with thousands of tenants is measured in a bounded number of short calls", async () => {
  const { tenant, prefix } = await world("first");
  await accept(tenant);
  const names = Array.from({ length: 5_000 }, (_, i) => `t${i}/e`);
  await redis.client.sadd(`${prefix}:ready`, ...names);
  for (const name of names.slice(0, 300)) await redis.client.xadd(`${prefix}:box:${name}`, "1-0", "p", "unreadable");
  const before = Number(/total_commands_processed:(\d+)/.exec(await redis.client.info("stats"))?.[1]);
  const { measured, tenantQueues } = await queue.depth(tenant.shard);
  const after = Number(/total_commands_processed:(\d+)/.exec(await redis.client.info("stats"))?.[1]);
  expect(tenantQueues).toBe(5_001);
  expect(measured.length).toBeLessThan(1_000);
  expect(after - before).toBeLessThan(2_100);
});

test("ten scrapers at one time cost one measurement, and so does a second scrape within seconds", async () => {
  const { metrics, asked } = shown(3);
  await Promise.all(Array.from({ length: 10 }, () => metrics.refresh()));
  await metrics.refresh();
  expect(asked()).toBe(3);
  clock.forward(6_000);
  await metrics.refresh();
  expect(asked()).toBe(6);
});

test("only the fifty longest tenant queues have series, and those that are empty again have none", async () => {
  const lengths = new Map(Array.from({ length: 200 }, (_, i) => [`t${i}`, i + 1]));
  const depth = async (shard: number) => ({
    shard,
    tenantQueues: lengths.size,
    measured: Array.from(lengths, ([tenantId, jobs]) => ({ tenantId, channel: "email", jobs, oldestMs: null })),
    parked: 0,
    oldestEventMs: null,
  });
  const { metrics, gauges, findGauge } = shown(1, { depth });
  await metrics.refresh();
  expect(gauges.get("tenant_queue_jobs")).toHaveLength(50);
  expect(findGauge("tenant_queue_jobs", { tenant: "t199" })).toBe(200);
  expect(findGauge("queue_jobs", { channel: "email" })).toBe(20_100);
  lengths.clear();
  clock.forward(6_000);
  await metrics.refresh();
  expect(gauges.get("tenant_queue_jobs")).toEqual([]);
  expect(findGauge("queue_jobs", { channel: "email" })).toBe(0);
});

test("while Redis is away or silent, old values are gone and no scrape waits for long", async () => {
  let answer: () => Promise<never> = () => Promise.reject(new Error("away"));
  const { metrics, gauges } = shown(1, { depth: () => answer() });
  await metrics.refresh();
  expect(gauges.get("queue_jobs")).toEqual([]);
  answer = () => new Promise(() => {});
  clock.forward(6_000);
  const asked = metrics.refresh();
  clock.forward(2_001);
  await asked;
});

test("a shard that nobody delivers is counted", async () => {
  const { tenant } = await world();
  const { metrics, findGauge } = shown(tenant.shard + 3);
  await metrics.refresh();
  expect(findGauge("shards_unowned", { role: "dispatcher" })).toBeGreaterThanOrEqual(2);
});
