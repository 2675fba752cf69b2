import { expect, test } from "bun:test";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { FENCED, type Lease, type PullResult, type TenantQueuePull } from "../../../src/domain/jobs/queue.ts";
import { PULL, ROOM } from "./queue-pulls.ts";
import {
  ACME_MAIL,
  accept,
  acquire,
  first,
  passShardTime,
  pullOne,
  queue,
  redis,
  sent,
  useQueueWorld,
  world,
} from "./queue-world.ts";

useQueueWorld();

const KIB = 1024;

async function scriptCalls(): Promise<number> {
  const stats = await redis.client.info("commandstats");
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

/** As many shards as possible, each with one queued job or several. */
async function worlds(count: number, jobs = 1, payload = "{}") {
  const all = [];
  for (let i = 0; i < count; i += 1) {
    const each = await world();
    const jobIds: string[] = [];
    for (let j = 0; j < jobs; j += 1) jobIds.push(await accept(each.tenant, { payload }));
    all.push({ ...each, jobIds });
  }
  return all;
}

function pullFrom(after: string | null = null): TenantQueuePull {
  return { tenantQueue: ACME_MAIL, after, entriesMax: 64, bytesMax: ROOM };
}

/** All asked at one time: the first two calls go out alone, the others in one call. */
function pullAll(leases: readonly Lease[], tenantQueues: readonly TenantQueuePull[], bytesMax = ROOM) {
  return Promise.all(leases.map((lease) => queue.pull(lease, { ...PULL, tenantQueues, bytesMax })));
}

function granted(results: readonly (PullResult | typeof FENCED)[]): readonly PullResult[] {
  return results.map((result) => {
    if (result === FENCED) throw new Error("fenced");
    return result;
  });
}

test("simultaneous pulls of many shards are one call, and each gets its own jobs", async () => {
  const all = await worlds(6);
  const [one, fencedOne] = [first(all), all[3]];
  await redis.client.hset(`${fencedOne?.prefix}:lease:dispatcher`, "token", "another's");
  const before = await scriptCalls();
  const results = await pullAll(
    all.map(({ lease }) => lease),
    [pullFrom()],
  );
  expect((await scriptCalls()) - before).toBe(3);
  expect(results[3]).toBe(FENCED);
  for (const [i, { jobIds }] of all.entries()) {
    const result = results[i];
    if (result === FENCED || result === undefined) continue;
    expect(result.tenantQueues.map(({ jobs }) => jobs.map(({ jobId }) => jobId))).toEqual([jobIds]);
    expect(result.ready).toEqual([ACME_MAIL]);
  }
  expect((await queue.job(one.tenant, first(one.jobIds)))?.status).toBe("running");
});

test("shards share a call's bytes, and each gets its turn", async () => {
  // One entry fills a third of the call, and every shard has more of them than a call takes.
  const all = await worlds(8, 2, JSON.stringify("x".repeat(100 * KIB)));
  const leases = all.map(({ lease }) => lease);
  const pulled = new Map<number, number>();
  for (let round = 0; round < 12 && pulled.size < all.length; round += 1) {
    const results = granted(await pullAll(leases, [pullFrom()], 300 * KIB)).slice(2);
    const counts = results.map(({ tenantQueues }) => tenantQueues[0]?.jobs.length ?? 0);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(2);
    expect(counts.filter((count) => count > 0).length).toBeGreaterThan(0);
    for (const [i, { tenantQueues }] of results.entries()) {
      if (first(tenantQueues).jobs.length === 0) expect(first(tenantQueues).more).toBe(true);
      else pulled.set(i + 2, round);
    }
    pulled.set(0, round).set(1, round);
  }
  expect(pulled.size).toBe(all.length);
});

test("retries due in many shards at once come back within a call's bytes", async () => {
  const all = await worlds(5, 1, JSON.stringify("x".repeat(100 * KIB)));
  for (const { lease, prefix } of all) {
    const job = first(await pullOne(lease, "acme"));
    await queue.settle(lease, [{ kind: "retry", job, delayMs: 1_000, status: "running" }]);
    await passShardTime(prefix, 2_000);
  }
  const leases = all.map(({ lease }) => lease);
  const results = granted(await pullAll(leases, [], 100 * KIB)).slice(2);
  expect(results.filter(({ more }) => more)).toHaveLength(2);
  for (let round = 0; round < 4; round += 1) await pullAll(leases, [], 100 * KIB);
  for (const { lease, jobIds } of all) {
    expect((await pullOne(lease, "acme")).map(({ jobId }) => jobId)).toEqual(jobIds);
  }
});

test("outcomes of many shards are one call, and a fenced shard does not hold up the others", async () => {
  const all = await worlds(5);
  const jobs: QueuedJob[] = [];
  for (const { lease } of all) jobs.push(first(await pullOne(lease, "acme")));
  await redis.client.hset(`${all[2]?.prefix}:lease:dispatcher`, "token", "another's");
  const before = await scriptCalls();
  const answers = await Promise.all(all.map(({ lease }, i) => queue.settle(lease, [sent(first(jobs.slice(i)))])));
  expect((await scriptCalls()) - before).toBe(3);
  expect(answers).toEqual(["settled", "settled", FENCED, "settled", "settled"]);
  for (const [i, { tenant, jobIds }] of all.entries()) {
    expect((await queue.job(tenant, first(jobIds)))?.status).toBe(i === 2 ? "running" : "success");
  }
});

test("only the shard whose data breaks the script fails, and no named tenant queue is lost", async () => {
  const all = await worlds(5);
  const broken = all[3];
  await redis.client.del(`${broken?.prefix}:held`);
  await redis.client.set(`${broken?.prefix}:held`, "not a set");
  const outcomes = await Promise.allSettled(all.map(({ lease }) => queue.pull(lease, PULL)));
  expect(outcomes.map(({ status }) => status)).toEqual([
    "fulfilled",
    "fulfilled",
    "fulfilled",
    "rejected",
    "fulfilled",
  ]);
  for (const outcome of outcomes) {
    if (outcome.status === "fulfilled") expect(outcome.value).toMatchObject({ ready: [ACME_MAIL] });
  }
});

test("a shard with a new owner is pulled under the new lease while loans settle under the former one", async () => {
  const { tenant, lease, jobIds } = first(await worlds(1));
  const job = first(await pullOne(lease, "acme"));
  await queue.settle(lease, [{ kind: "lend", job, forMs: 60_000 }]);
  await queue.release(lease);
  const next = await acquire(tenant.shard, "dispatcher");
  const fresh = await accept(tenant);
  const other = first(await pullOne(next, "acme"));
  expect(other.jobId).toBe(fresh);
  await Promise.all([queue.settle(next, []), queue.settleLent(lease, [sent(job)]), queue.settle(next, [sent(other)])]);
  for (const jobId of [...jobIds, fresh]) expect((await queue.job(tenant, jobId))?.status).toBe("success");
});
