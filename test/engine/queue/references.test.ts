import { expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { FENCED, type Settlement } from "../../../src/domain/jobs/queue.ts";
import { limits } from "../../../src/domain/limits.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { accept, acquire, first, jobIds, pullOne, queue, redis, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

function named(job: QueuedJob, providerRef: string): Settlement {
  return { kind: "final", job, status: "success", result: {}, event: { type: "sent", result: {} }, providerRef };
}

/** Jobs that were never queued: a settlement still names them. */
function manyJobs(count: number): readonly QueuedJob[] {
  return Array.from({ length: count }, () => {
    const of = { tenantId: "acme", channel: "whatsapp", entryId: "0-1", recipient: "34600000000" } as const;
    return { ...of, jobId: jobIds.next(), attempts: 0, suppressed: null, payload: "{}" };
  });
}

/** A queue on the same Redis whose clock is ahead. */
async function queueAhead(byMs: number): Promise<RedisQueue> {
  const clock = { ...systemClock, nowMs: () => Date.now() + byMs };
  const address = { kind: "socket", path: redis.path } as const;
  const ahead = new RedisQueue({
    channels: CHANNELS,
    address,
    clock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  });
  await ahead.start();
  return ahead;
}

test("a message's job is found by its reference once settled, whichever tenant it belongs to", async () => {
  const [one, two] = [await world("acme"), await world("büro")];
  const ids = [await accept(one.tenant), await accept(two.tenant)];
  await queue.settle(one.lease, [named(first(await pullOne(one.lease, "acme")), "wamid.one")]);
  await queue.settle(two.lease, [named(first(await pullOne(two.lease, "büro")), "wamid.two")]);
  expect(await queue.findReferencedJobs(["wamid.two", "wamid.none", "wamid.one", "wamid.two"])).toEqual([
    { tenantId: "büro", jobId: ids[1] ?? "" },
    null,
    { tenantId: "acme", jobId: ids[0] ?? "" },
    { tenantId: "büro", jobId: ids[1] ?? "" },
  ]);
  expect(await queue.findReferencedJobs([])).toEqual([]);
});

test("a failed job can have a reference, too, and a repeat changes nothing", async () => {
  const { tenant, lease } = await world();
  const jobId = await accept(tenant);
  const job = first(await pullOne(lease, "acme"));
  const end = { status: "failed", result: {}, event: { type: "failed", result: {} } } as const;
  const settlement: Settlement = { kind: "final", job, ...end, providerRef: "wamid.failed" };
  for (let again = 0; again < 2; again += 1) await queue.settle(lease, [settlement]);
  expect(await queue.findReferencedJobs(["wamid.failed"])).toEqual([{ tenantId: "acme", jobId }]);
});

test("an owner without the lease can still store references", async () => {
  const { tenant, lease } = await world();
  const jobId = await accept(tenant);
  const job = first(await pullOne(lease, "acme"));
  await queue.release(lease);
  await acquire(tenant.shard, "dispatcher");
  expect(await queue.settle(lease, [named(job, "wamid.fenced")])).toBe(FENCED);
  expect(await queue.findReferencedJobs(["wamid.fenced"])).toEqual([{ tenantId: "acme", jobId }]);
});

test("a job is not settled before its reference is stored", async () => {
  const { tenant, lease } = await world();
  const ids = [await accept(tenant), await accept(tenant)];
  const [one, two] = await pullOne(lease, "acme");
  if (one === undefined || two === undefined) throw new Error("two jobs were accepted");
  await queue.settle(lease, [named(one, "wamid.again")]);
  const keys = await redis.client.keys("wb:{ref*");
  for (const key of keys) await redis.client.set(key, "no hash");
  await expect(queue.settle(lease, [named(two, "wamid.again")])).rejects.toThrow();
  expect((await queue.job(tenant, two.jobId))?.status).toBe("running");
  await redis.client.del(keys);
  expect(await queue.settle(lease, [named(two, "wamid.again")])).toBe("settled");
  expect(await queue.findReferencedJobs(["wamid.again"])).toEqual([{ tenantId: "acme", jobId: ids[1] ?? "" }]);
});

test("each of thousands is found in one call, and none leads to another's job", async () => {
  const { lease } = await world();
  const jobs = manyJobs(5_000);
  const references = jobs.map((_, i) => `wamid.many.${i}`);
  for (let at = 0; at < jobs.length; at += engineLimits.settleBatchMax) {
    const batch = jobs.slice(at, at + engineLimits.settleBatchMax);
    await queue.settle(
      lease,
      batch.map((job, i) => named(job, references[at + i] ?? "")),
    );
  }
  const found = await queue.findReferencedJobs(references);
  expect(found.map((address) => address?.jobId)).toEqual(jobs.map(({ jobId }) => jobId));
  const strangers = references.map((reference) => `${reference}.`);
  expect((await queue.findReferencedJobs(strangers)).every((address) => address === null)).toBe(true);
}, 90_000);

test("a reference is found for the promised time, by processes whose clocks differ, and expires with its hour", async () => {
  const { tenant, lease } = await world();
  const jobId = await accept(tenant);
  await queue.settle(lease, [named(first(await pullOne(lease, "acme")), "wamid.kept")]);
  for (const aheadMs of [-engineLimits.providerRefHourMs, 0, limits.providerRefKeptMs]) {
    const ahead = await queueAhead(aheadMs);
    expect(await ahead.findReferencedJobs(["wamid.kept"])).toEqual([{ tenantId: "acme", jobId }]);
    await ahead.stop();
  }
  const keys = await redis.client.keys("wb:{ref*");
  expect(keys.length).toBeGreaterThan(0);
  for (const key of keys) {
    const lifeMs = await redis.client.pttl(key);
    expect(lifeMs).toBeGreaterThan(limits.providerRefKeptMs - 60_000);
    expect(lifeMs).toBeLessThanOrEqual(limits.providerRefKeptMs);
  }
});

test("a full Redis does not prevent a settlement with a reference", async () => {
  const { tenant, lease } = await world();
  const jobId = await accept(tenant);
  const job = first(await pullOne(lease, "acme"));
  await redis.client.config("SET", "maxmemory", "1mb");
  try {
    expect(await queue.settle(lease, [named(job, "wamid.full")])).toBe("settled");
    expect(await queue.findReferencedJobs(["wamid.full"])).toEqual([{ tenantId: "acme", jobId }]);
  } finally {
    await redis.client.config("SET", "maxmemory", "0");
  }
});

test("a reference costs little", async () => {
  const { lease } = await world();
  const jobs = manyJobs(engineLimits.settleBatchMax * 80);
  const before = await usedBytes();
  for (let at = 0; at < jobs.length; at += engineLimits.settleBatchMax) {
    const batch = jobs.slice(at, at + engineLimits.settleBatchMax);
    await queue.settle(
      lease,
      batch.map((job, i) => named(job, `wamid.bytes.${at + i}`)),
    );
  }
  await redis.client.del(await redis.client.keys(`wb:{s${String(lease.shard).padStart(2, "0")}}:*`));
  // With the 4096 hashes of an hour themselves, which a hundred times as many references would share.
  expect(((await usedBytes()) - before) / jobs.length).toBeLessThan(100);
}, 90_000);

async function usedBytes(): Promise<number> {
  return Number(/used_memory_dataset:(\d+)/.exec(await redis.client.info("memory"))?.[1]);
}
