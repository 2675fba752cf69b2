import { describe, expect, test } from "bun:test";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { FENCED } from "../../../src/domain/jobs/queue.ts";
import { PULL, ROOM } from "./queue-pulls.ts";
import {
  ACME_MAIL,
  accept,
  acquire,
  first,
  newJob,
  PER_MINUTE,
  pullOne,
  queue,
  redis,
  sent,
  useQueueWorld,
  world,
} from "./queue-world.ts";

useQueueWorld();

describe("accept", () => {
  test("queues a pending job, and names its tenant as ready", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    expect(await queue.job(tenant, jobId)).toEqual({
      jobId,
      tenantId: "acme",
      channel: "email",
      status: "pending",
      attempts: 0,
      result: null,
      events: [],
    });
    expect(await queue.pull(lease, PULL)).toMatchObject({ ready: [ACME_MAIL] });
  });

  test("never admits more than the plan's number, and says when there is room again", async () => {
    const { tenant } = await world();
    const answers = await Promise.all(Array.from({ length: 8 }, () => queue.accept(tenant, 5, newJob())));
    expect(answers.filter((answer) => answer.kind === "accepted")).toHaveLength(5);
    const limited = answers.filter((answer) => answer.kind === "limited");
    expect(limited).toHaveLength(3);
    expect(limited[0]?.rate).toMatchObject({ limit: 5, remaining: 0 });
    expect(limited[0]?.rate.resetSeconds).toBe(60);
    expect((await queue.admit(tenant, 5)).limited).toBe(true);
  });

  test("a window that was used up within one slice has room again after sixty seconds, not after the slice", async () => {
    const { tenant, prefix } = await world();
    // The slice at the edge of the window, as long as the second that the request falls into.
    const atTheEdge = async (lastMs: number) => {
      for (;;) {
        const second = Number((await redis.client.time())[0]);
        const edge = second - 60;
        await redis.client.hset(`${prefix}:rate:acme`, { [edge]: 5, last: `${edge} 5 ${edge * 1000 + lastMs}` });
        await redis.client.hset(`${prefix}:tenants`, "acme", `0 0 ${edge} 5 ${second - 1} 0`);
        const { limited } = await queue.admit(tenant, 5);
        if (Number((await redis.client.time())[0]) === second) return limited;
      }
    };
    expect(await atTheEdge(0)).toBe(false);
    expect(await atTheEdge(2_000)).toBe(true);
  });

  test("requests count for sixty seconds, not longer", async () => {
    const { tenant, prefix } = await world();
    const slice = async () => Math.floor(Number((await redis.client.time())[0]));
    const remaining = async () => (await queue.admit(tenant, 100)).rate.remaining;
    await redis.client.hset(`${prefix}:rate:acme`, (await slice()) - 200, 25);
    await redis.client.hset(`${prefix}:tenants`, "acme", `0 0 ${(await slice()) - 200} 30 ${(await slice()) - 100} 5`);
    expect(await remaining()).toBe(99);
    expect(await redis.client.exists(`${prefix}:rate:acme`)).toBe(0);
    // Two slices apart from the edges: the clock goes on while the test runs.
    const now = await slice();
    await redis.client.hset(`${prefix}:rate:acme`, now - 70, 3, now - 63, 4, now - 50, 2);
    await redis.client.hset(`${prefix}:tenants`, "acme", `0 0 ${now - 70} 10 ${now - 20} 1`);
    expect(await remaining()).toBe(100 - 2 - 1 - 1);
    // A clock that was set back a little goes on counting, one that was set back far begins anew.
    await redis.client.hset(`${prefix}:tenants`, "acme", `0 0 ${now + 3} 7 ${now + 10} 7`);
    expect(await remaining()).toBe(92);
    await redis.client.hset(`${prefix}:tenants`, "acme", `0 0 ${now + 3000} 7 ${now + 3000} 7`);
    expect(await remaining()).toBe(99);
  });

  test("requests whose window Redis forgot do not count for ever", async () => {
    const { tenant, prefix } = await world();
    const now = Math.floor(Number((await redis.client.time())[0]));
    await redis.client.hset(`${prefix}:tenants`, "acme", `0 0 ${now - 30} 5 ${now - 10} 2`);
    expect((await queue.admit(tenant, 5)).rate.remaining).toBe(5 - 2 - 1);
    expect(await redis.client.hgetall(`${prefix}:rate:acme`)).toEqual({ [String(now - 10)]: "2" });
  });

  test("answers a repeated idempotency key with the first job, and another body with a conflict", async () => {
    const { tenant } = await world();
    const idempotency = { key: "order 7", fingerprint: "aa" };
    const jobId = await accept(tenant, { idempotency });
    const again = await queue.accept(tenant, PER_MINUTE, newJob({ idempotency }));
    expect(again).toMatchObject({ kind: "replayed", jobId });
    expect(await queue.queuedUnder(tenant, idempotency)).toEqual({ jobId, isSame: true });
    const altered = { key: "order 7", fingerprint: "bb" };
    expect(await queue.queuedUnder(tenant, altered)).toEqual({ jobId, isSame: false });
    expect(await queue.queuedUnder(tenant, { key: "order 8", fingerprint: "aa" })).toBeNull();
    const other = newJob({ idempotency: { key: "order 7", fingerprint: "bb" } });
    expect(await queue.accept(tenant, PER_MINUTE, other)).toMatchObject({ kind: "conflict" });
    expect(await redis.client.xlen(`wb:{s${String(tenant.shard).padStart(2, "0")}}:box:acme/e`)).toBe(1);
  });

  test("keeps the tenants of one shard apart", async () => {
    const { tenant } = await world();
    const neighbour = { ...tenant, tenantId: "other" };
    const idempotency = { key: "k", fingerprint: "f" };
    const jobId = await accept(tenant, { idempotency });
    expect(await accept(neighbour, { idempotency })).not.toBe(jobId);
    expect(await queue.job(neighbour, jobId)).toBeNull();
  });

  test("is refused whole when Redis is full, while jobs can still leave", async () => {
    const { tenant, lease } = await world();
    await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await redis.client.config("SET", "maxmemory", "1mb");
    try {
      await expect(queue.accept(tenant, PER_MINUTE, newJob())).rejects.toThrow("refuses writes");
      expect(await queue.settle(lease, [sent(job)])).toBe("settled");
      expect(await queue.renew(lease)).toBe(true);
    } finally {
      await redis.client.config("SET", "maxmemory", "0");
    }
  });
});

describe("pull", () => {
  test("hands out jobs in order, once, and makes them running", async () => {
    const { tenant, lease } = await world();
    const ids = [await accept(tenant), await accept(tenant), await accept(tenant)];
    const jobs = await pullOne(lease, "acme");
    expect(jobs.map((job) => job.jobId)).toEqual(ids);
    expect(first(jobs)).toMatchObject({
      recipient: "ann@example.com",
      attempts: 0,
      payload: '{"to":"ann@example.com"}',
    });
    expect((await queue.job(tenant, first(ids)))?.status).toBe("running");
    expect(await pullOne(lease, "acme", jobs[2]?.entryId ?? null)).toEqual([]);
    const later = await accept(tenant);
    expect((await queue.job(tenant, later))?.status).toBe("pending");
  });

  test("says which recipients are suppressed, and such a job never ran", async () => {
    const { tenant, lease, prefix } = await world();
    const jobId = await accept(tenant);
    await redis.client.hset(`${prefix}:suppressed:acme`, "ann@example.com", "bounced");
    expect(first(await pullOne(lease, "acme")).suppressed).toBe("bounced");
    expect((await queue.job(tenant, jobId))?.status).toBe("pending");
  });

  test("a new owner gets the jobs that the last one pulled and did not settle", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    await queue.pull(lease, PULL);
    await pullOne(lease, "acme");
    await queue.release(lease);
    const next = await acquire(tenant.shard, "dispatcher");
    expect(await queue.pull(next, { ...PULL, survey: true })).toMatchObject({ ready: [ACME_MAIL] });
    expect(first(await pullOne(next, "acme")).jobId).toBe(jobId);
  });

  test("a running job does not look pending again when a new owner starts from the beginning", async () => {
    const { tenant, lease } = await world();
    const ids = [await accept(tenant), await accept(tenant)];
    await pullOne(lease, "acme");
    await queue.release(lease);
    const next = await acquire(tenant.shard, "dispatcher");
    await queue.pull(next, {
      ...PULL,
      tenantQueues: [{ tenantQueue: ACME_MAIL, after: null, entriesMax: 1, bytesMax: ROOM }],
      survey: true,
    });
    for (const jobId of ids) expect((await queue.job(tenant, jobId))?.status).toBe("running");
  });

  test("a running job does not look pending again when its recipient has been suppressed since", async () => {
    const { tenant, lease, prefix } = await world();
    const jobId = await accept(tenant);
    await pullOne(lease, "acme");
    await redis.client.hset(`${prefix}:suppressed:acme`, "ann@example.com", "bounced");
    await queue.release(lease);
    const next = await acquire(tenant.shard, "dispatcher");
    expect(first(await pullOne(next, "acme")).suppressed).toBe("bounced");
    expect((await queue.job(tenant, jobId))?.status).toBe("running");
  });

  test("each channel of a tenant has its own tenant queue", async () => {
    const { tenant, lease } = await world();
    await accept(tenant);
    const chat = await accept(tenant, { channel: "whatsapp", recipient: "34600000000" });
    const tenantQueue = { tenantId: "acme", channel: "whatsapp" } as const;
    const result = await queue.pull(lease, {
      ...PULL,
      tenantQueues: [{ tenantQueue, after: null, entriesMax: 9, bytesMax: ROOM }],
    });
    if (result === FENCED) throw new Error("fenced");
    expect(result.tenantQueues[0]?.jobs.map((job) => [job.jobId, job.channel])).toEqual([[chat, "whatsapp"]]);
    expect(result.ready).toHaveLength(2);
  });
});

describe("when Redis dies", () => {
  test("accepted jobs are there after the restart, and callers learn about the rest", async () => {
    const { tenant, lease } = await world("durable");
    const accepted: string[] = [];
    const load = Array.from({ length: 200 }, async () => {
      accepted.push(await accept(tenant));
    });
    await Promise.race(load);
    await redis.kill();
    await redis.restart();
    await Promise.allSettled(load);
    expect(accepted.length).toBeGreaterThan(0);
    for (const jobId of accepted) expect((await queue.job(tenant, jobId))?.status).toBe("pending");
    // A repeated accept has not queued any job twice.
    const queued = new Set<string>();
    for (let after: string | null = null; ; ) {
      const jobs: readonly QueuedJob[] = await pullOne(lease, "durable", after);
      if (jobs.length === 0) break;
      for (const job of jobs) {
        expect(queued.has(job.jobId)).toBe(false);
        queued.add(job.jobId);
        after = job.entryId;
      }
    }
    for (const jobId of accepted) expect(queued.has(jobId)).toBe(true);
  });
});
