import { expect, test } from "bun:test";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Lease, NewJob, Settlement } from "../../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import { eventually } from "../../support/eventually.ts";
import {
  ACME_MAIL,
  accept,
  failed,
  first,
  newJob,
  passShardTime,
  pullOne,
  queue,
  record,
  redis,
  sent,
  stepClock,
  useQueueWorld,
  world,
} from "./queue-world.ts";

useQueueWorld();

const MINUTE_MS = 60_000;
const TAGS = [{ name: "campaign", value: "spring" }];
const STORED = { sha256: "ab".repeat(32), bytes: 300_000 };
const TRACE = `00-${"5e".repeat(16)}-${"a1".repeat(8)}-01`;

function later(tenant: TenantRef, inMs = 10 * MINUTE_MS, more: Partial<NewJob> = {}): Promise<string> {
  return accept(tenant, { dueMs: Date.now() + inMs, ...more });
}

async function readLoad(prefix: string): Promise<string> {
  return (await redis.client.hget(`${prefix}:tenants`, "acme"))?.split(" ").slice(0, 2).join(" ") ?? "";
}

function retryIn(job: QueuedJob, delayMs: number): Settlement {
  return { kind: "retry", job, delayMs, status: "running" };
}

test.each<[string, Partial<NewJob>]>([
  ["a payload", {}],
  ["a payload that is stored elsewhere", { payload: "", stored: STORED }],
  ["a trace and tags", { traceparent: TRACE, tags: TAGS }],
  ["content that needs screening", { needsScreening: true }],
])("a scheduled job with %s is pending until its time comes, and counts in its tenant's share", async (_, content) => {
  const at = await world();
  const dueMs = Date.now() + 10 * MINUTE_MS;
  const jobId = await accept(at.tenant, { ...content, dueMs });
  expect(await pullOne(at.lease, "acme")).toEqual([]);
  expect(await queue.job(at.tenant, jobId)).toMatchObject({ status: "pending", dueMs });
  expect(await readLoad(at.prefix)).toMatch(/^1 [1-9]/);
  const listed = await queue.waitingJob(at.tenant, jobId);
  expect(Math.abs((listed?.nextAttemptMs ?? 0) - dueMs)).toBeLessThan(1_000);

  await passShardTime(at.prefix, 9 * MINUTE_MS);
  expect(await pullOne(at.lease, "acme")).toEqual([]);
  await passShardTime(at.prefix, MINUTE_MS);
  const job = first(await pullOne(at.lease, "acme"));
  expect(job).toMatchObject({ jobId, ...content, dueMs, attempts: 0 });
  const told = await queue.job(at.tenant, jobId);
  expect(told).toMatchObject({ status: content.needsScreening === true ? "pending" : "running" });
  expect(told).not.toHaveProperty("dueMs");
  await queue.settle(at.lease, [sent(job)], null);
  expect(await readLoad(at.prefix)).toBe("0 0");
});

test("neither a step of Redis' clock nor a repeated accept moves a scheduled job", async () => {
  const at = await world();
  await pullOne(at.lease, "acme");
  const job = newJob({ dueMs: Date.now() + 10 * MINUTE_MS });
  await queue.accept(at.tenant, null, job);
  const shardTimeMs = Date.now();
  await stepClock(at.prefix, 60 * MINUTE_MS);
  const asked = { tenantQueues: [], survey: false, bytesMax: 1_000, shardTimeMs, confirmedSkewMs: null };
  const answer = await queue.pull(at.lease, asked);
  expect(typeof answer === "symbol" ? null : Math.round((answer.nextDueMs ?? 0) / MINUTE_MS)).toBe(10);
  // Set back before the next pull, the clock counts from the last one.
  await stepClock(at.prefix, -60 * MINUTE_MS);
  await later(at.tenant, 5 * MINUTE_MS);
  const again = await queue.pull(at.lease, { ...asked, shardTimeMs: Date.now() });
  expect(typeof again === "symbol" ? null : Math.round((again.nextDueMs ?? 0) / MINUTE_MS)).toBe(5);
});

test("a scheduled job can be moved, also to now, until its time has come", async () => {
  const at = await world();
  const jobId = await later(at.tenant, 10 * MINUTE_MS, { payload: "", stored: STORED, tags: TAGS });
  const dueMs = Date.now() + 60 * MINUTE_MS;
  expect(await queue.reschedule(at.tenant, jobId, dueMs)).toBe("moved");
  expect(await queue.job(at.tenant, jobId)).toMatchObject({ status: "pending", dueMs });
  await passShardTime(at.prefix, 20 * MINUTE_MS);
  expect(await pullOne(at.lease, "acme")).toEqual([]);
  expect(await queue.reschedule({ ...at.tenant, tenantId: "bolt" }, jobId, dueMs)).toBe("unknown");
  const nowMs = Date.now();
  expect(await queue.reschedule(at.tenant, jobId, nowMs)).toBe("moved");
  const job = first(await pullOne(at.lease, "acme"));
  expect(job).toMatchObject({ jobId, dueMs: nowMs, tags: TAGS, stored: STORED });
  expect(await queue.reschedule(at.tenant, jobId, dueMs)).toBe("begun");
  await queue.settle(at.lease, [sent(job)], null);
  expect(await queue.reschedule(at.tenant, jobId, dueMs)).toBe("ended");
  const neverScheduled = await accept(at.tenant);
  expect(await queue.reschedule(at.tenant, neverScheduled, dueMs)).toBe("begun");
  expect(await queue.reschedule(at.tenant, newJob().jobId, dueMs)).toBe("unknown");
});

const places: [string, (tenant: TenantRef, lease: Lease, content: Partial<NewJob>) => Promise<string>][] = [
  ["waits for its time", (tenant, _, content) => later(tenant, MINUTE_MS, content)],
  [
    "was moved",
    async (tenant, _, content) => {
      const jobId = await later(tenant, MINUTE_MS, content);
      await queue.reschedule(tenant, jobId, Date.now() + 2 * MINUTE_MS);
      return jobId;
    },
  ],
  ["waits in its tenant queue", (tenant, _, content) => accept(tenant, content)],
  [
    "waits behind jobs that are in flight",
    async (tenant, lease, content) => {
      await accept(tenant);
      await pullOne(lease, "acme");
      return accept(tenant, content);
    },
  ],
  [
    "waits for a retry",
    async (tenant, lease, content) => {
      const jobId = await accept(tenant, content);
      const job = first(await pullOne(lease, "acme"));
      await queue.settle(lease, [retryIn(job, MINUTE_MS)], null);
      return jobId;
    },
  ],
];

test.each(places)("a job that %s is cancelled once, and leaves nothing behind but its end", async (_, bring) => {
  const at = await world();
  const jobId = await bring(at.tenant, at.lease, { template: "welcome", tags: TAGS, traceparent: TRACE });
  const others = (await readLoad(at.prefix)).startsWith("2") ? 1 : 0;
  expect(await queue.cancel({ ...at.tenant, tenantId: "bolt" }, jobId)).toBe("unknown");
  expect(await queue.cancel(at.tenant, jobId)).toBe("canceled");
  expect(await queue.cancel(at.tenant, jobId)).toBe("canceled");
  const result = { reason: "canceled" };
  expect(await queue.job(at.tenant, jobId)).toMatchObject({ status: "suppressed", result });
  expect((await readLoad(at.prefix)).startsWith(`${others} `)).toBe(true);
  await passShardTime(at.prefix, 5 * MINUTE_MS);
  expect((await pullOne(at.lease, "acme")).map((job) => job.jobId)).not.toContain(jobId);
  const rows = (await record(at.recorder, null))?.rows ?? [];
  expect(rows).toMatchObject([
    { jobId, type: "suppressed", result, finished: { status: "suppressed", result, template: "welcome", tags: TAGS } },
  ]);
  expect(rows[0]?.finished?.recipient).toBe("ann@example.com");
});

test("the last job of a tenant queue takes the queue's cursor with it, so a later job is pending again", async () => {
  const at = await world();
  await accept(at.tenant);
  const job = first(await pullOne(at.lease, "acme"));
  const waiting = await accept(at.tenant);
  await queue.settle(at.lease, [sent(job)], null);
  expect(await queue.cancel(at.tenant, waiting)).toBe("canceled");
  expect(await redis.client.hlen(`${at.prefix}:cursor`)).toBe(0);
  const next = await accept(at.tenant);
  expect((await queue.job(at.tenant, next))?.status).toBe("pending");
  expect(first(await pullOne(at.lease, "acme")).jobId).toBe(next);
});

test("a job that its owner has pulled stays, and the owner is asked", async () => {
  const at = await world();
  const jobId = await accept(at.tenant);
  const job = first(await pullOne(at.lease, "acme"));
  const asked: unknown[] = [];
  const stop = queue.onCancel((...about) => asked.push(about));
  expect(await queue.cancel(at.tenant, jobId)).toBe("asked");
  await eventually("the owner is asked", async () => asked.length > 0);
  expect(asked).toEqual([[at.tenant.shard, { ...ACME_MAIL }, jobId]]);
  stop();
  await queue.settle(at.lease, [retryIn(job, 0)], null);
  // Its owner has pulled its retry again.
  await pullOne(at.lease, "acme");
  expect(await queue.cancel(at.tenant, jobId)).toBe("asked");
});

test("a job that is lent, that its provider has, or that has ended, cannot be cancelled", async () => {
  const at = await world();
  const [lent, reported, ended] = [await accept(at.tenant), await accept(at.tenant), await accept(at.tenant)];
  const jobs = await pullOne(at.lease, "acme");
  const [lend, , end] = jobs;
  if (lend === undefined || end === undefined) throw new Error("three jobs were pulled");
  const outcomes: Settlement[] = [{ kind: "lend", job: lend, forMs: MINUTE_MS }, failed(end)];
  await queue.settle(at.lease, outcomes, null);
  const report = { jobId: reported, type: "delivered", result: {}, suppress: null, known: null } as const;
  expect(await queue.observe(at.tenant, report)).toBe("kept");
  const answers = [lent, reported, ended].map((jobId) => queue.cancel(at.tenant, jobId));
  expect(await Promise.all(answers)).toEqual(["begun", "begun", "ended"]);
});

test("a job that a gateway has only looked into can be cancelled, and its click joins its history", async () => {
  const at = await world();
  const jobId = await accept(at.tenant);
  const job = first(await pullOne(at.lease, "acme"));
  const click = { jobId, type: "clicked", result: { url: "https://a.test" }, suppress: null, known: null } as const;
  expect(await queue.observe(at.tenant, click)).toBe("kept");
  await queue.settle(at.lease, [retryIn(job, MINUTE_MS)], null);
  expect(await queue.cancel(at.tenant, jobId)).toBe("canceled");
  expect(await queue.cancel(at.tenant, jobId)).toBe("canceled");
  const ended = await queue.job(at.tenant, jobId);
  expect(ended).toMatchObject({ status: "suppressed", result: { reason: "canceled" } });
  expect(ended?.events.map(({ type, result }) => [type, result])).toEqual([
    ["suppressed", { reason: "canceled" }],
    ["clicked", { url: "https://a.test" }],
  ]);
});

test("a purge makes a scheduled job due, a moment later than others", async () => {
  const at = await world();
  const scheduled = await later(at.tenant);
  await accept(at.tenant);
  const job = first(await pullOne(at.lease, "acme"));
  await queue.settle(at.lease, [retryIn(job, 10 * MINUTE_MS)], null);
  expect(await queue.hastenParked(at.tenant, ["email"])).toBe(2);
  expect((await pullOne(at.lease, "acme")).map(({ jobId }) => jobId)).toEqual([job.jobId]);
  await passShardTime(at.prefix, 5_000);
  expect((await pullOne(at.lease, "acme")).map(({ jobId }) => jobId)).toContain(scheduled);
});

test("an erased recipient's scheduled job ends as soon as it is erased", async () => {
  const at = await world();
  const jobId = await later(at.tenant);
  expect(await queue.eraseJobs(at.tenant, "ann@example.com")).toMatchObject({ unfinished: 1 });
  expect(first(await pullOne(at.lease, "acme"))).toMatchObject({ jobId, suppressed: "erased" });
});

test("the age of a job that was scheduled counts from its time", async () => {
  const at = await world();
  const oldMs = Date.now() - 20 * 24 * 60 * MINUTE_MS;
  const old = oldMs.toString(16).padStart(12, "0");
  const jobId = `${old.slice(0, 8)}-${old.slice(8)}-7000-8000-000000000001`;
  const dueMs = Date.now() - 3_000;
  await accept(at.tenant, { jobId, dueMs });
  const { measured } = await queue.depth(at.tenant.shard);
  expect(measured).toEqual([{ ...ACME_MAIL, jobs: 1, oldestMs: dueMs }]);
});
