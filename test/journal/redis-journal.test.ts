import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { firstEventIdAt } from "../../src/core/event.ts";
import { JobIds } from "../../src/core/ids.ts";
import type { JobRecord, QueuedJob } from "../../src/core/job.ts";
import { FENCED, type Lease, type NewJob, type RecordBatch, type Settlement } from "../../src/core/journal.ts";
import { limits } from "../../src/core/limits.ts";
import type { TenantRef } from "../../src/core/tenant.ts";
import { RedisJournal } from "../../src/journal/redis-journal.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";

const PER_MINUTE = 1_000_000;
const TTL_MS = 60_000;
const ACME_MAIL = { tenantId: "acme", channel: "email" } as const;

let redis: RedisServer;
let journal: RedisJournal;
const jobIds = new JobIds(systemClock, systemRandom);
let shards = 0;

beforeAll(async () => {
  redis = await startRedis();
  journal = new RedisJournal({
    address: { kind: "socket", path: redis.path },
    clock: systemClock,
    random: systemRandom,
    telemetry: new QuietTelemetry(),
  });
  await journal.start();
});

afterAll(async () => {
  await journal.stop();
  await redis.stop();
});

/** A shard of the test's own, owned by it. */
async function world(tenantId = "acme") {
  const tenant: TenantRef = { tenantId, shard: shards++ };
  const lease = await acquire(tenant.shard, "dispatcher");
  const recorder = await acquire(tenant.shard, "recorder");
  return { tenant, lease, recorder, prefix: `wb:{s${String(tenant.shard).padStart(2, "0")}}` };
}

async function acquire(shard: number, role: "dispatcher" | "recorder"): Promise<Lease> {
  const lease = await journal.acquire(shard, role, "test", TTL_MS);
  if (lease === null) throw new Error("the lease is taken");
  return lease;
}

function newJob(overrides: Partial<NewJob> = {}): NewJob {
  return {
    jobId: jobIds.next(),
    channel: "email",
    recipient: "ann@example.com",
    payload: '{"to":"ann@example.com"}',
    idempotency: null,
    ...overrides,
  };
}

function idMadeBefore(ms: number): string {
  return new JobIds({ ...systemClock, nowMs: () => Date.now() - ms }, systemRandom).next();
}

async function accept(tenant: TenantRef, overrides: Partial<NewJob> = {}): Promise<string> {
  const answer = await journal.accept(tenant, PER_MINUTE, newJob(overrides));
  if (answer.kind !== "accepted") throw new Error(`not accepted: ${answer.kind}`);
  return answer.jobId;
}

async function pullOne(lease: Lease, tenantId: string, after: string | null = null): Promise<readonly QueuedJob[]> {
  const result = await journal.pull(lease, {
    boxes: [{ box: { tenantId, channel: "email" }, after, entriesMax: 64 }],
    survey: false,
  });
  if (result === FENCED) throw new Error("fenced");
  return result.boxes[0]?.jobs ?? [];
}

function first<T>(items: readonly T[]): T {
  const item = items[0];
  if (item === undefined) throw new Error("the list is empty");
  return item;
}

function sent(job: QueuedJob): Settlement {
  return { kind: "final", job, status: "success", result: {}, event: { type: "sent", result: {} } };
}

function failed(job: QueuedJob): Settlement {
  const result = { error: "refused" };
  return { kind: "final", job, status: "failed", result, event: { type: "failed", result } };
}

async function record(lease: Lease, done: RecordBatch | null): Promise<RecordBatch | null> {
  const batch = await journal.record(lease, done);
  if (batch === FENCED) throw new Error("fenced");
  return batch;
}

describe("accept", () => {
  test("queues a job that is pending, and names its tenant as ready", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    expect(await journal.job(tenant, jobId)).toEqual({
      jobId,
      tenantId: "acme",
      channel: "email",
      status: "pending",
      attempts: 0,
      result: null,
      events: [],
    });
    expect(await journal.pull(lease, { boxes: [], survey: false })).toMatchObject({ ready: [ACME_MAIL] });
  });

  test("never lets more than the plan's number through, and says when there is room again", async () => {
    const { tenant } = await world();
    const answers = await Promise.all(Array.from({ length: 8 }, () => journal.accept(tenant, 5, newJob())));
    expect(answers.filter((answer) => answer.kind === "accepted")).toHaveLength(5);
    const limited = answers.filter((answer) => answer.kind === "limited");
    expect(limited).toHaveLength(3);
    expect(limited[0]?.rate).toMatchObject({ limit: 5, remaining: 0 });
    expect(limited[0]?.rate.resetSeconds).toBeGreaterThanOrEqual(60);
    expect(limited[0]?.rate.resetSeconds).toBeLessThanOrEqual(61);
    expect((await journal.admit(tenant, 5)).limited).toBe(true);
  });

  test("what has left the window of sixty seconds counts no more, what is in it does", async () => {
    const { tenant, prefix } = await world();
    const slice = async () => Math.floor(Number((await redis.client.time())[0]));
    const remaining = async () => (await journal.admit(tenant, 100)).rate.remaining;
    await redis.client.hset(`${prefix}:rate:acme`, (await slice()) - 200, 25);
    await redis.client.hset(`${prefix}:rate`, "acme", `${(await slice()) - 200} 30 ${(await slice()) - 100} 5`);
    expect(await remaining()).toBe(99);
    expect(await redis.client.exists(`${prefix}:rate:acme`)).toBe(0);
    // Two slices apart from the edges: the clock goes on while the test runs.
    const now = await slice();
    await redis.client.hset(`${prefix}:rate:acme`, now - 70, 3, now - 63, 4, now - 50, 2);
    await redis.client.hset(`${prefix}:rate`, "acme", `${now - 70} 10 ${now - 20} 1`);
    expect(await remaining()).toBe(100 - 2 - 1 - 1);
    // A clock that was set back a little goes on counting, one that was set back far begins anew.
    await redis.client.hset(`${prefix}:rate`, "acme", `${now + 3} 7 ${now + 10} 7`);
    expect(await remaining()).toBe(92);
    await redis.client.hset(`${prefix}:rate`, "acme", `${now + 3000} 7 ${now + 3000} 7`);
    expect(await remaining()).toBe(99);
  });

  test("what a window has forgotten does not count for ever", async () => {
    const { tenant, prefix } = await world();
    const now = Math.floor(Number((await redis.client.time())[0]));
    await redis.client.hset(`${prefix}:rate`, "acme", `${now - 30} 5 ${now - 10} 2`);
    expect((await journal.admit(tenant, 5)).rate.remaining).toBe(5 - 2 - 1);
    expect(await redis.client.hgetall(`${prefix}:rate:acme`)).toEqual({ [String(now - 10)]: "2" });
  });

  test("answers a repeated idempotency key with the first job, and another body with a conflict", async () => {
    const { tenant } = await world();
    const idempotency = { key: "order 7", fingerprint: "aa" };
    const jobId = await accept(tenant, { idempotency });
    const again = await journal.accept(tenant, PER_MINUTE, newJob({ idempotency }));
    expect(again).toMatchObject({ kind: "replayed", jobId });
    expect(await journal.queuedUnder(tenant, idempotency)).toBe(jobId);
    expect(await journal.queuedUnder(tenant, { key: "order 7", fingerprint: "bb" })).toBeNull();
    expect(await journal.queuedUnder(tenant, { key: "order 8", fingerprint: "aa" })).toBeNull();
    const other = newJob({ idempotency: { key: "order 7", fingerprint: "bb" } });
    expect(await journal.accept(tenant, PER_MINUTE, other)).toMatchObject({ kind: "conflict" });
    expect(await redis.client.xlen(`wb:{s${String(tenant.shard).padStart(2, "0")}}:box:acme/e`)).toBe(1);
  });

  test("a try that arrives behind its own repeat queues nothing", async () => {
    const { tenant, prefix } = await world();
    const monitor = await redis.client.duplicate().monitor();
    const seen = new Promise<readonly string[]>((resolve) => {
      monitor.on("monitor", (_time: string, args: readonly string[]) => {
        if (args[0]?.toLowerCase() === "evalsha" && args.includes(tenant.tenantId)) resolve(args);
      });
    });
    await accept(tenant);
    const [, sha = "", keys = "1", ...rest] = await seen;
    monitor.disconnect();
    const argvAt = Number(keys);
    const repeat = rest.with(argvAt, "1");
    // As if the first try were still on its way: nothing of it is there.
    await redis.client.flushall();
    await redis.client.evalsha(sha, keys, ...repeat);
    await redis.client.evalsha(sha, keys, ...rest);
    expect(await redis.client.xlen(`${prefix}:box:acme/e`)).toBe(1);
    await redis.client.evalsha(sha, keys, ...repeat);
    expect(await redis.client.xlen(`${prefix}:box:acme/e`)).toBe(1);
  });

  test("keeps the tenants of one shard apart", async () => {
    const { tenant } = await world();
    const neighbour = { ...tenant, tenantId: "other" };
    const idempotency = { key: "k", fingerprint: "f" };
    const jobId = await accept(tenant, { idempotency });
    expect(await accept(neighbour, { idempotency })).not.toBe(jobId);
    expect(await journal.job(neighbour, jobId)).toBeNull();
  });

  test("is refused whole when redis is full, while work can still leave", async () => {
    const { tenant, lease } = await world();
    await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await redis.client.config("SET", "maxmemory", "1mb");
    try {
      expect(journal.accept(tenant, PER_MINUTE, newJob())).rejects.toThrow("refuses writes");
      expect(await journal.settle(lease, [sent(job)])).toBe("settled");
      expect(await journal.renew(lease, TTL_MS)).toBe(true);
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
    expect((await journal.job(tenant, first(ids)))?.status).toBe("running");
    expect(await pullOne(lease, "acme", jobs[2]?.entryId ?? null)).toEqual([]);
    const later = await accept(tenant);
    expect((await journal.job(tenant, later))?.status).toBe("pending");
  });

  test("says which recipients are suppressed, and such a job never was running", async () => {
    const { tenant, lease, prefix } = await world();
    const jobId = await accept(tenant);
    await redis.client.hset(`${prefix}:suppressed:acme`, "ann@example.com", "bounced");
    expect(first(await pullOne(lease, "acme")).suppressed).toBe("bounced");
    expect((await journal.job(tenant, jobId))?.status).toBe("pending");
  });

  test("a new owner finds what the last one had pulled and not settled", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    await journal.pull(lease, { boxes: [], survey: false });
    await pullOne(lease, "acme");
    await journal.release(lease);
    const next = await acquire(tenant.shard, "dispatcher");
    expect(await journal.pull(next, { boxes: [], survey: true })).toMatchObject({ ready: [ACME_MAIL] });
    expect(first(await pullOne(next, "acme")).jobId).toBe(jobId);
  });

  test("what was running does not look pending again when a new owner begins at the start", async () => {
    const { tenant, lease } = await world();
    const ids = [await accept(tenant), await accept(tenant)];
    await pullOne(lease, "acme");
    await journal.release(lease);
    const next = await acquire(tenant.shard, "dispatcher");
    await journal.pull(next, { boxes: [{ box: ACME_MAIL, after: null, entriesMax: 1 }], survey: true });
    for (const jobId of ids) expect((await journal.job(tenant, jobId))?.status).toBe("running");
  });

  test("what was running does not look pending again when its recipient has been suppressed since", async () => {
    const { tenant, lease, prefix } = await world();
    const jobId = await accept(tenant);
    await pullOne(lease, "acme");
    await redis.client.hset(`${prefix}:suppressed:acme`, "ann@example.com", "bounced");
    await journal.release(lease);
    const next = await acquire(tenant.shard, "dispatcher");
    expect(first(await pullOne(next, "acme")).suppressed).toBe("bounced");
    expect((await journal.job(tenant, jobId))?.status).toBe("running");
  });

  test("a tenant's channels have boxes of their own", async () => {
    const { tenant, lease } = await world();
    await accept(tenant);
    const chat = await accept(tenant, { channel: "whatsapp", recipient: "34600000000" });
    const box = { tenantId: "acme", channel: "whatsapp" } as const;
    const result = await journal.pull(lease, { boxes: [{ box, after: null, entriesMax: 9 }], survey: false });
    if (result === FENCED) throw new Error("fenced");
    expect(result.boxes[0]?.jobs.map((job) => [job.jobId, job.channel])).toEqual([[chat, "whatsapp"]]);
    expect(result.ready).toHaveLength(2);
  });

  test("does not read far beyond the bytes that a tenant may have at once", async () => {
    const { tenant, lease } = await world();
    const payload = JSON.stringify("x".repeat(limits.pullBytesPerBoxMax / 4));
    for (let i = 0; i < 30; i += 1) await accept(tenant, { payload });
    const result = await journal.pull(lease, {
      boxes: [{ box: ACME_MAIL, after: null, entriesMax: 64 }],
      survey: false,
    });
    if (result === FENCED) throw new Error("fenced");
    expect(result.boxes[0]?.more).toBe(true);
    expect(result.boxes[0]?.jobs.length).toBeLessThan(16);
  });
});

describe("settle", () => {
  test("ends a job once: its event, its result, its box entry", async () => {
    const { tenant, lease, prefix } = await world();
    const jobId = await accept(tenant);
    const before = firstEventIdAt(Date.now() - 5);
    const job = first(await pullOne(lease, "acme"));
    expect(await journal.settle(lease, [sent(job)])).toBe("settled");
    expect(await journal.settle(lease, [sent(job)])).toBe("settled");
    expect(await journal.settle(lease, [failed(job)])).toBe("settled");
    const settled = await journal.job(tenant, jobId);
    expect(settled).toMatchObject({
      status: "success",
      attempts: 1,
      result: {},
      events: [{ type: "sent", result: {} }],
    });
    expect(settled?.events[0]?.eventId).toBeGreaterThanOrEqual(before);
    expect(await redis.client.exists(`${prefix}:box:acme/e`)).toBe(0);
    expect(await redis.client.xlen(`${prefix}:outbox`)).toBe(1);
    expect(await redis.client.sismember(`${prefix}:held`, "acme/e")).toBe(0);
  });

  test("a settlement that comes again removes no entry of another job that got the same id", async () => {
    const { tenant, lease, prefix } = await world();
    await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await journal.settle(lease, [sent(job)]);
    // The box was empty and is gone: its stream begins anew, and a clock that stands still gives the same id again.
    const other = jobIds.next();
    await redis.client.xadd(`${prefix}:box:acme/e`, job.entryId, "p", `${other} e0 bob@example.com\n{}`);
    await journal.settle(lease, [sent(job)]);
    expect((await pullOne(lease, "acme")).map(({ jobId }) => jobId)).toEqual([other]);
  });

  test("a retry comes back when it is due, with its attempts counted", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    expect(await journal.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "running" }])).toBe("settled");
    expect((await journal.job(tenant, jobId))?.status).toBe("running");
    expect(await journal.pull(lease, { boxes: [], survey: false })).toMatchObject({
      ready: [ACME_MAIL],
      nextDueMs: null,
    });
    const again = first(await pullOne(lease, "acme"));
    expect(again).toMatchObject({ jobId, attempts: 1, payload: job.payload });
    // A repeat of the first settlement, late, changes nothing of the second attempt.
    await journal.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "running" }]);
    expect(first(await pullOne(lease, "acme")).jobId).toBe(jobId);
    await journal.settle(lease, [sent(again)]);
    expect(await journal.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 2 });
  });

  test("a retry that is not due stays away, and the owner hears when it will be", async () => {
    const { tenant, lease } = await world();
    await accept(tenant);
    await journal.pull(lease, { boxes: [], survey: false });
    await journal.settle(lease, [
      { kind: "retry", job: first(await pullOne(lease, "acme")), delayMs: 60_000, status: "running" },
    ]);
    const result = await journal.pull(lease, { boxes: [], survey: true });
    if (result === FENCED) throw new Error("fenced");
    expect(result.ready).toEqual([]);
    expect(result.nextDueMs).toBeGreaterThan(50_000);
    expect(result.nextDueMs).toBeLessThanOrEqual(60_000);
  });

  test("a retry whose entry redis has forgotten counts nothing, so that the job which waits elsewhere is not lost", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await journal.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "running" }]);
    // As of here the job is parked with one attempt; what was written after that is gone, the owner's answer comes late.
    const forgotten = { ...job, attempts: 1, entryId: "99999999999999-0" };
    await journal.settle(lease, [{ kind: "retry", job: forgotten, delayMs: 0, status: "running" }]);
    await journal.pull(lease, { boxes: [], survey: false });
    await journal.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    expect(await journal.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 2 });
  });

  test("keeps the payload of a failed job for the operator's retry", async () => {
    const { tenant, lease, prefix } = await world();
    const jobId = await accept(tenant);
    await journal.settle(lease, [failed(first(await pullOne(lease, "acme")))]);
    expect(await journal.job(tenant, jobId)).toMatchObject({ status: "failed", result: { error: "refused" } });
    expect(await redis.client.get(`${prefix}:failed:${jobId}`)).toBe(
      `${jobId} e1 ann@example.com\n{"to":"ann@example.com"}`,
    );
  });

  test("an owner that lost its lease changes nothing", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await journal.release(lease);
    await acquire(tenant.shard, "dispatcher");
    expect(await journal.settle(lease, [sent(job)])).toBe(FENCED);
    expect(await journal.pull(lease, { boxes: [], survey: false })).toBe(FENCED);
    expect(await journal.renew(lease, TTL_MS)).toBe(false);
    expect((await journal.job(tenant, jobId))?.events).toEqual([]);
  });
});

describe("a job whose content is looked at first", () => {
  test("is pending until it is started, and running then", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant, { needsScreening: true });
    const job = first(await pullOne(lease, "acme"));
    expect(job).toMatchObject({ jobId, attempts: 0, needsScreening: true, recipient: "ann@example.com" });
    expect((await journal.job(tenant, jobId))?.status).toBe("pending");
    await journal.settle(lease, [{ kind: "start", job }]);
    expect(await journal.job(tenant, jobId)).toMatchObject({ status: "running", attempts: 0 });
    await journal.settle(lease, [{ kind: "start", job }, sent(job)]);
    await journal.settle(lease, [{ kind: "start", job }]);
    expect(await journal.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 1 });
  });

  test("stays pending while it cannot be looked at, comes again, and can fail without ever having been running", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant, { needsScreening: true });
    const job = first(await pullOne(lease, "acme"));
    await journal.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "pending" }]);
    expect(await journal.job(tenant, jobId)).toMatchObject({ status: "pending", attempts: 1 });
    await journal.pull(lease, { boxes: [], survey: false });
    const again = first(await pullOne(lease, "acme"));
    expect(again).toMatchObject({ jobId, attempts: 1, needsScreening: true });
    expect((await journal.job(tenant, jobId))?.status).toBe("pending");
    await journal.settle(lease, [failed(again)]);
    expect((await journal.job(tenant, jobId))?.status).toBe("failed");
  });

  test("does not look pending again once it has been running", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant, { needsScreening: true });
    const job = first(await pullOne(lease, "acme"));
    await journal.settle(lease, [{ kind: "start", job }]);
    await journal.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "pending" }]);
    expect((await journal.job(tenant, jobId))?.status).toBe("running");
  });
});

describe("observe", () => {
  test("adds an event of a type once, and never touches the status", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    await journal.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    const delivered = {
      jobId,
      type: "delivered",
      result: {},
      suppress: null,
      known: null,
      whenUnfinished: "record",
    } as const;
    expect(await journal.observe(tenant, delivered)).toBe("recorded");
    expect(await journal.observe(tenant, delivered)).toBe("duplicate");
    const bounced = { ...delivered, type: "bounced", result: { code: 550 } } as const;
    const suppress = { recipient: "ann@example.com", reason: "bounced" } as const;
    expect(await journal.observe(tenant, { ...bounced, suppress })).toBe("recorded");
    const job = await journal.job(tenant, jobId);
    expect(job?.status).toBe("success");
    expect(job?.events.map((event) => event.type)).toEqual(["sent", "delivered", "bounced"]);
    const ids = job?.events.map((event) => event.eventId) ?? [];
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    await accept(tenant);
    expect(first(await pullOne(lease, "acme")).suppressed).toBe("bounced");
  });

  test("a click counts once a link", async () => {
    const { tenant } = await world();
    const jobId = await accept(tenant);
    const click = (url: string) =>
      journal.observe(tenant, {
        jobId,
        type: "clicked",
        result: { url },
        suppress: null,
        known: null,
        whenUnfinished: "record",
      });
    expect([await click("https://a.test"), await click("https://a.test"), await click("https://b.test")]).toEqual([
      "recorded",
      "duplicate",
      "recorded",
    ]);
  });

  test("a click that names no link counts once", async () => {
    const { tenant } = await world();
    const jobId = await accept(tenant);
    const click = { jobId, type: "clicked", result: {}, suppress: null, known: null } as const;
    expect(await journal.observe(tenant, { ...click, whenUnfinished: "record" })).toBe("recorded");
    expect(await journal.observe(tenant, { ...click, whenUnfinished: "record" })).toBe("duplicate");
  });

  test("an event before the settlement is kept, and the settlement keeps it", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await journal.observe(tenant, {
      jobId,
      type: "delivered",
      result: {},
      suppress: null,
      known: null,
      whenUnfinished: "record",
    });
    await journal.settle(lease, [sent(job)]);
    const types = (await journal.job(tenant, jobId))?.events.map((event) => event.type);
    expect(types).toEqual(["delivered", "sent"]);
  });

  test("what comes before the job has ended can be held, so that `sent` comes first", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    const delivered = { jobId, type: "delivered", result: {}, suppress: null, known: null } as const;
    expect(await journal.observe(tenant, { ...delivered, whenUnfinished: "hold" })).toBe("early");
    await journal.settle(lease, [sent(job)]);
    expect(await journal.observe(tenant, { ...delivered, whenUnfinished: "hold" })).toBe("recorded");
    expect((await journal.job(tenant, jobId))?.events.map((event) => event.type)).toEqual(["sent", "delivered"]);
  });

  test("a job that is no longer here is unknown, until the caller says what the ledger knows", async () => {
    const { tenant } = await world();
    const jobId = jobIds.next();
    const observation = { jobId, type: "opened", result: {}, suppress: null, whenUnfinished: "record" } as const;
    expect(await journal.observe(tenant, { ...observation, known: null })).toBe("unknown");
    const known: JobRecord = {
      jobId,
      tenantId: "acme",
      channel: "email",
      status: "success",
      attempts: 1,
      result: {},
      events: [{ eventId: 5, type: "sent", result: {} }],
    };
    expect(await journal.observe(tenant, { ...observation, known })).toBe("recorded");
    expect((await journal.job(tenant, jobId))?.events.map((event) => event.type)).toEqual(["sent", "opened"]);
    expect(await journal.observe({ ...tenant, tenantId: "other" }, { ...observation, known: null })).toBe("unknown");
  });
});

describe("record", () => {
  test("hands out the same batch until it is done, then the next, each row once", async () => {
    const { tenant, lease, recorder } = await world();
    const one = await accept(tenant);
    await journal.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    const batch = await record(recorder, null);
    expect(batch?.rows).toMatchObject([
      {
        tenantId: "acme",
        jobId: one,
        channel: "email",
        type: "sent",
        result: {},
        finished: { status: "success", attempts: 1 },
      },
    ]);
    await journal.observe(tenant, {
      jobId: one,
      type: "delivered",
      result: {},
      suppress: null,
      known: null,
      whenUnfinished: "record",
    });
    expect(await record(recorder, null)).toEqual({ token: batch?.token ?? "", rows: batch?.rows ?? [], more: true });
    const next = await record(recorder, batch);
    expect(next?.rows.map((row) => [row.type, row.finished])).toEqual([["delivered", null]]);
    expect(next?.token).not.toBe(batch?.token);
    // A repeat of the first removal, late, removes nothing.
    expect(await record(recorder, batch)).toEqual(next);
    expect(await record(recorder, next)).toBeNull();
  });

  test("a finished job leaves redis some time after its last event is recorded, an unfinished one never", async () => {
    const { tenant, lease, recorder, prefix } = await world();
    const jobId = await accept(tenant, { jobId: idMadeBefore(limits.bucketClosesMs + 1000) });
    const bucket = `${prefix}:jobs:${jobId.slice(0, 8)}${jobId.slice(9, 12)}`;
    expect(await redis.client.pttl(bucket)).toBe(-1);
    await journal.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    expect(await redis.client.pttl(bucket)).toBe(-1);
    await record(recorder, await record(recorder, null));
    expect(await redis.client.pttl(bucket)).toBeGreaterThan(limits.jobKeptMs - 10_000);
    await journal.observe(tenant, {
      jobId,
      type: "delivered",
      result: {},
      suppress: null,
      known: null,
      whenUnfinished: "record",
    });
    expect(await redis.client.pttl(bucket)).toBe(-1);
    await record(recorder, await record(recorder, null));
    expect(await redis.client.pttl(bucket)).toBeGreaterThan(0);
  });

  test("a bucket that may still get jobs does not expire, however complete it is", async () => {
    const { tenant, lease, recorder, prefix } = await world();
    const jobId = await accept(tenant);
    await journal.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    await record(recorder, await record(recorder, null));
    expect(await redis.client.pttl(`${prefix}:jobs:${jobId.slice(0, 8)}${jobId.slice(9, 12)}`)).toBe(-1);
    expect(await redis.client.llen(`${prefix}:closing`)).toBe(1);
  });

  test("a bucket of which nothing is recorded does not expire, although an earlier one of its name was", async () => {
    const { tenant, recorder, prefix } = await world();
    const jobId = idMadeBefore(limits.bucketClosesMs + 1000);
    const events = [{ eventId: 5, type: "sent", result: {} }] as const;
    const of = { jobId, tenantId: "acme", channel: "email", status: "success", attempts: 1, result: {} } as const;
    const opened = { jobId, type: "opened", result: {}, suppress: null, whenUnfinished: "record" } as const;
    await journal.observe(tenant, { ...opened, known: { ...of, events } });
    const bucket = `${jobId.slice(0, 8)}${jobId.slice(9, 12)}`;
    await redis.client.rpush(`${prefix}:closing`, bucket);
    const batch = await record(recorder, null);
    expect(await redis.client.pttl(`${prefix}:jobs:${bucket}`)).toBe(-1);
    await record(recorder, batch);
    expect(await redis.client.pttl(`${prefix}:jobs:${bucket}`)).toBeGreaterThan(0);
  });

  test("a straggler keeps its old bucket from expiring", async () => {
    const { tenant, lease, recorder, prefix } = await world();
    const jobId = await accept(tenant, { jobId: idMadeBefore(limits.bucketClosesMs + 1000) });
    await journal.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    await record(recorder, await record(recorder, null));
    const bucket = `${prefix}:jobs:${jobId.slice(0, 8)}${jobId.slice(9, 12)}`;
    expect(await redis.client.pttl(bucket)).toBeGreaterThan(0);
    await accept(tenant, { jobId: `${jobId.slice(0, -4)}ffff` });
    expect(await redis.client.pttl(bucket)).toBe(-1);
  });

  test("carries results that hold anything JSON can hold", async () => {
    const { tenant, lease, recorder } = await world();
    await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    const result = { error: 'line\nbreak "quoted" \\ = \u2028 é 𝄞', nested: { list: [1, null, true], empty: {} } };
    await journal.settle(lease, [{ kind: "final", job, status: "failed", result, event: { type: "failed", result } }]);
    expect(first((await record(recorder, null))?.rows ?? []).result).toEqual(result);
    expect((await journal.job(tenant, job.jobId))?.result).toEqual(result);
    expect((await journal.job(tenant, job.jobId))?.events[0]?.result).toEqual(result);
  });
});

describe("leases", () => {
  test("a lease has one holder, and its token is never used again", async () => {
    const shard = shards++;
    const one = await acquire(shard, "dispatcher");
    expect(await journal.acquire(shard, "dispatcher", "other", TTL_MS)).toBeNull();
    await journal.release(one);
    const two = await acquire(shard, "dispatcher");
    expect(two.token).not.toBe(one.token);
    await journal.release(one);
    expect(await journal.renew(two, TTL_MS)).toBe(true);
  });

  test("counts the processes that play a role", async () => {
    expect(await journal.heartbeat("recorder", "one", TTL_MS)).toBe(1);
    expect(await journal.heartbeat("recorder", "two", TTL_MS)).toBe(2);
    expect(await journal.heartbeat("recorder", "one", TTL_MS)).toBe(2);
    await journal.resign("recorder", "two");
    expect(await journal.heartbeat("recorder", "one", TTL_MS)).toBe(1);
    await journal.resign("recorder", "one");
  });
});

describe("when redis dies", () => {
  test("what was answered is there after the restart, and callers hear of the rest", async () => {
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
    for (const jobId of accepted) expect((await journal.job(tenant, jobId))?.status).toBe("pending");
    // A repeated accept has queued nothing twice.
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
