import { afterAll, beforeAll, expect, test } from "bun:test";
import { CHANNELS } from "../../src/app/channels.ts";
import { JobIds } from "../../src/domain/ids.ts";
import type { Lease, Settlement } from "../../src/domain/jobs/queue.ts";
import { Dispatcher } from "../../src/engine/dispatch/dispatcher.ts";
import { RedisQueue } from "../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { NO_HISTORIES } from "../support/no-histories.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { aTenant, createDirectory } from "../support/tenants.ts";
import { type Bounded, expectOver, expectWithin } from "./bounds.ts";
import { measureRedisUse, type RedisUse } from "./redis-use.ts";

const SHARDS = 16;
const TENANTS = 20;
const AT_A_TIME = 64;
const WAVES = 50;
const JOBS = AT_A_TIME * WAVES;

const ports = { clock: systemClock, random: systemRandom, telemetry: new QuietTelemetry() };
const tenants = Array.from({ length: TENANTS }, (_, i) => aTenant({ tenantId: `t${i}`, shard: i % SHARDS }));
const ids = new JobIds(systemClock, systemRandom);
let redis: RedisServer;
let queue: CountingQueue;
let turn = 0;

/** Counts the settled jobs. */
class CountingQueue extends RedisQueue {
  settled = 0;
  onSettled: () => void = () => {};

  override async settle(lease: Lease, settlements: readonly Settlement[], shardTimeMs: number | null = null) {
    const answer = await super.settle(lease, settlements, shardTimeMs);
    this.settled += settlements.length;
    this.onSettled();
    return answer;
  }
}

beforeAll(async () => {
  redis = await startRedis();
  queue = new CountingQueue({ channels: CHANNELS, address: { kind: "socket", path: redis.path }, ...ports });
  await queue.start();
  // The first call of a script sends its text.
  await acceptOne();
});

afterAll(async () => {
  await queue.stop();
  await redis.stop();
});

async function acceptOne(): Promise<void> {
  turn += 1;
  const tenant = tenants[turn % TENANTS];
  if (tenant === undefined) throw new Error("there are as many tenants");
  const payload = JSON.stringify({ to: "ann@example.test", template: "shipped", data: { name: "Ann", order: turn } });
  const quota = { jobs: tenant.plan.queuedJobsMax, bytes: tenant.plan.queuedBytesMax };
  const job = { jobId: ids.next(), channel: "email", recipient: "ann@example.test", payload, quota } as const;
  const answer = await queue.accept(tenant, 1_000_000, { ...job, template: "shipped", idempotency: null });
  expect(answer.kind).toBe("accepted");
}

async function acceptInWaves(): Promise<void> {
  for (let i = 0; i < WAVES; i += 1) await Promise.all(Array.from({ length: AT_A_TIME }, acceptOne));
}

/** Delivers the queued jobs, one slot at a time or with the usual number. */
async function deliverAll(jobs: number, slots: number): Promise<void> {
  const due = queue.settled + jobs;
  const { promise, resolve } = Promise.withResolvers<void>();
  queue.onSettled = () => queue.settled >= due && resolve();
  const dispatcher = new Dispatcher({
    queue,
    directory: createDirectory(tenants),
    channels: [{ name: "email", slots, deliver: async () => ({ kind: "delivered", result: {} }) }],
    histories: NO_HISTORIES,
    suppressions: { fill: async () => true },
    owner: `guard-${due}`,
    shards: SHARDS,
    ...ports,
  });
  dispatcher.start();
  await promise;
  await dispatcher.stop();
}

function expectAllWithin(verb: "accept" | "dispatch", use: RedisUse, jobs: number): void {
  for (const [what, count] of counts(verb, use)) expectWithin(what, count / jobs);
}

function counts(verb: "accept" | "dispatch", use: RedisUse): readonly (readonly [Bounded, number])[] {
  return [
    [`${verb}: script calls a job`, use.scripts],
    [`${verb}: Redis commands a job`, use.commands],
    [`${verb}: bytes appended a job`, use.appended],
  ];
}

test("sixty-four simultaneous requests share two script calls", async () => {
  expectAllWithin("accept", await measureRedisUse(redis.client, acceptInWaves), JOBS);
});

test("queued jobs are pulled and settled many at a time", async () => {
  await deliverAll(turn - queue.settled, 512);
  await acceptInWaves();
  expectAllWithin("dispatch", await measureRedisUse(redis.client, () => deliverAll(JOBS, 512)), JOBS);
});

test("a call per job exceeds the bounds", async () => {
  const jobs = 200;
  const accepting = await measureRedisUse(redis.client, async () => {
    for (let i = 0; i < jobs; i += 1) await acceptOne();
  });
  for (const [what, count] of counts("accept", accepting)) expectOver(what, count / jobs);
  const settling = await measureRedisUse(redis.client, () => deliverAll(jobs, 1));
  for (const [what, count] of counts("dispatch", settling)) expectOver(what, count / jobs);
});
