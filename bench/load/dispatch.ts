import { Queue } from "bullmq";
import { JobIds } from "../../src/domain/ids.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import type { RedisServer } from "../../test/support/redis.ts";
import { openBenchQueue } from "./bench-queue.ts";
import { redisCpuMs, startBenchRedis } from "./bench-redis.ts";
import { benchTenants, SEND_PAYLOAD } from "./bench-world.ts";
import { startChild } from "./child.ts";
import { round } from "./latency.ts";

export const DISPATCH_TENANTS = 50;

export interface DispatchTarget {
  readonly name: string;
  round(jobs: number): Promise<DispatchRound>;
}

export interface DispatchRound {
  /**
   * Jobs per second, from the worker's start (including its connection and, for Waybill, its leases) to the last job.
   */
  readonly perSecond: number;
  /** CPU of Redis per job, in microseconds. */
  readonly redisMicros: number;
}

/** Queued jobs and a worker that discards them, each round in a fresh process on the same durable Redis. */
export async function dispatchTargets(): Promise<{ targets: readonly DispatchTarget[]; stop(): Promise<void> }> {
  const redis = await startBenchRedis();
  const bullmq = (concurrency: number): DispatchTarget => ({
    name: `bullmq, concurrency ${concurrency}`,
    async round(jobs) {
      await fillBullmq(redis, jobs);
      return drain(redis, jobs, "bench/baseline/bullmq-worker.ts", [redis.url, String(concurrency), String(jobs)]);
    },
  });
  const waybill: DispatchTarget = {
    name: "waybill",
    async round(jobs) {
      await redis.client.flushall();
      await fillWaybill(redis, jobs);
      return drainWaybill(redis, jobs);
    },
  };
  return { targets: [waybill, bullmq(50), bullmq(100), bullmq(200)], stop: () => redis.stop() };
}

/** Delivers the given number of queued jobs to a channel that discards them. */
export function drainWaybill(redis: RedisServer, jobs: number): Promise<DispatchRound> {
  return drain(redis, jobs, "bench/load/waybill-worker.ts", [redis.url, String(jobs), String(DISPATCH_TENANTS)]);
}

async function drain(
  redis: RedisServer,
  jobs: number,
  script: string,
  args: readonly string[],
): Promise<DispatchRound> {
  const before = await redisCpuMs(redis.client);
  const child = await startChild(script, args);
  await child.stop();
  const redisMicros = round((((await redisCpuMs(redis.client)) - before) * 1000) / jobs, 1);
  return { perSecond: Math.round((jobs * 1000) / Number(child.firstLine)), redisMicros };
}

/** Queues the given number of jobs for the benchmark's tenants. */
export async function fillWaybill(redis: RedisServer, jobs: number): Promise<void> {
  const queue = await openBenchQueue(redis.url);
  const tenants = benchTenants(DISPATCH_TENANTS);
  const ids = new JobIds(systemClock, systemRandom);
  let accepts: Promise<unknown>[] = [];
  for (let i = 0; i < jobs; i += 1) {
    const tenant = tenants[i % DISPATCH_TENANTS];
    if (tenant === undefined) continue;
    const recipient = "ann.example@customer.example.com";
    const job = { jobId: ids.next(), channel: "email", recipient, payload: SEND_PAYLOAD, idempotency: null } as const;
    accepts.push(queue.accept(tenant, tenant.plan.requestsPerMinute, job));
    // If all were created at once, the jobs of a second would share a few dozen buckets; real ones arrive over time.
    if (i % 200 === 0) await Bun.sleep(1);
    if (accepts.length === 5000) {
      await Promise.all(accepts);
      accepts = [];
    }
  }
  await Promise.all(accepts);
  await queue.stop();
}

async function fillBullmq(redis: RedisServer, jobs: number): Promise<void> {
  await redis.client.flushall();
  const { hostname, port } = new URL(redis.url);
  const queue = new Queue("email", { connection: { host: hostname, port: Number(port) } });
  const data = JSON.parse(SEND_PAYLOAD);
  const opts = { attempts: 12, backoff: { type: "exponential", delay: 1000 } } as const;
  for (let at = 0; at < jobs; at += 500) {
    const count = Math.min(500, jobs - at);
    await queue.addBulk(Array.from({ length: count }, () => ({ name: "email", data, opts: { ...opts } })));
  }
  await queue.close();
}
