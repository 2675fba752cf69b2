import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { CHANNELS } from "../../src/app/channels.ts";
import { UnavailableError } from "../../src/domain/errors.ts";
import { JobIds } from "../../src/domain/ids.ts";
import type { QueuedJob } from "../../src/domain/jobs/job.ts";
import { ANY_JOB } from "../../src/domain/jobs/job-search.ts";
import { FENCED, type Lease, type NewJob, type Settlement } from "../../src/domain/jobs/queue.ts";
import { type ChargedJob, type RetryCharge, waitsInLife } from "../../src/domain/jobs/retry.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import { RedisQueue } from "../../src/engine/queue/redis-queue.ts";
import { Retries } from "../../src/engine/retries/retries.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { ClickHouseFailedJobs } from "../../src/events/failed-jobs.ts";
import { sealedTarget } from "../../src/events/failed-payloads.ts";
import { findJobs } from "../../src/events/find-jobs.ts";
import { ClickHouseFinishedJobs } from "../../src/events/finished-jobs.ts";
import { nameOfPayload } from "../../src/http/sending/accept-job.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { contentSeal } from "../../src/storage/content-seal.ts";
import { recipientIndex } from "../../src/storage/recipient-index.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { aTenant } from "../support/tenants.ts";

const ids = new JobIds(systemClock, systemRandom);
const tenant = aTenant({ tenantId: "acme", shard: 0 });
const index = recipientIndex(new Uint8Array(32));
const seal = contentSeal(new Uint8Array(32).fill(7), systemRandom);
const stored = new Map<string, Uint8Array>();
const payloads = {
  get: async ({ jobId }: { readonly jobId: string }) => stored.get(jobId) ?? null,
  put: async ({ jobId }: { readonly jobId: string }, bytes: Uint8Array) => void stored.set(jobId, bytes),
};
const PAYLOAD = JSON.stringify({ to: "ann@example.com", html: '<p>"Hello" \\ é\u2028</p>\n\t', subject: "a secret" });

setDefaultTimeout(90_000);

let chdb: Awaited<ReturnType<typeof startEngine>>;
let redis: RedisServer;
let queue: RedisQueue;
let eventStore: TestEventStore;
let writer: ClickHouseEventWriter;
let finishedJobs: ClickHouseFinishedJobs;
let retries: Retries;
let owner: Lease;
let recorder: Lease;
let charged: string[] = [];
const charge = async ({ jobId }: ChargedJob): Promise<RetryCharge> => {
  if (charged.includes("none left")) return { kind: "refused", why: "no token is left" };
  charged.push(jobId);
  return { kind: "taken" };
};
let take = charge;

beforeAll(async () => {
  chdb = await startEngine();
  redis = await startRedis();
  const address = { kind: "socket", path: redis.path } as const;
  const telemetry = new QuietTelemetry();
  queue = new RedisQueue({ channels: CHANNELS, address, clock: systemClock, random: systemRandom, telemetry });
  await queue.start();
  eventStore = await chdb.eventStore("retries");
  const { target, reading, reader, writing } = eventStore;
  writer = new ClickHouseEventWriter(writing, target, systemClock, { ports: { recipients: index, seal, payloads } });
  finishedJobs = new ClickHouseFinishedJobs(reading, target, index);
  const failed = new ClickHouseFailedJobs({ clickhouse: reading, target, seal, clock: systemClock });
  retries = new Retries({
    queue,
    eventStore: {
      job: (tenantId, jobId) => reader.job(tenantId, jobId),
      failedJobs: (tenantId, jobIds) => failed.failedJobs(tenantId, jobIds),
    },
    payloads,
    charges: {
      take: (_, job) => take(job),
      giveBack: async (_, { jobId }) => void (charged = charged.filter((one) => one !== jobId)),
    },
    clock: systemClock,
  });
  owner = await acquireLease("dispatcher");
  recorder = await acquireLease("recorder");
});

afterAll(async () => {
  await queue.stop();
  await redis.stop();
  await chdb.stop();
});

async function acquireLease(role: "dispatcher" | "recorder"): Promise<Lease> {
  const lease = await queue.acquire(0, role, "test", null);
  if (lease === null) throw new Error("the lease is taken");
  return lease;
}

const EXTRAS = { tags: [{ name: "campaign", value: "spring" }], dueMs: 1_600_000_000_000 };

async function accept(more: Partial<NewJob> = {}): Promise<string> {
  const jobId = ids.next();
  const job = { jobId, channel: "email", recipient: "ann@example.com", payload: PAYLOAD, idempotency: null, ...more };
  expect((await queue.accept(tenant, null, job)).kind).toBe("accepted");
  return jobId;
}

async function pull(): Promise<readonly QueuedJob[]> {
  const tenantQueue = { tenantId: "acme", channel: "email" };
  const asked = { tenantQueue, after: null, entriesMax: 64, bytesMax: 4e6 };
  const result = await queue.pull(owner, {
    tenantQueues: [asked],
    survey: true,
    bytesMax: 4e6,
    shardTimeMs: null,
    confirmedSkewMs: null,
  });
  if (result === FENCED) throw new Error("fenced");
  return result.tenantQueues[0]?.jobs ?? [];
}

function failing(job: QueuedJob): Settlement {
  const result = { error: "refused" };
  return { kind: "final", job, status: "failed", result, event: { type: "failed", result } };
}

function sending(job: QueuedJob): Settlement {
  return { kind: "final", job, status: "success", result: {}, event: { type: "sent", result: {} } };
}

/** The event store receives the whole outbox. */
async function record(): Promise<void> {
  for (let done: Parameters<RedisQueue["record"]>[0][number]["done"] = null; ; ) {
    const { batches } = await queue.record([{ lease: recorder, done, refused: null, takes: true }]);
    const [batch] = batches;
    if (batch === undefined) return;
    await writer.write(
      batch.token,
      batch.pieces.flatMap(({ rows }) => rows),
    );
    done = batch.pieces[0] ?? null;
  }
}

/** Fails all queued jobs. */
async function failAll(): Promise<readonly QueuedJob[]> {
  const jobs = await pull();
  await queue.settle(owner, jobs.map(failing));
  return jobs;
}

async function leaveRedis(): Promise<void> {
  const keys = await redis.client.keys("wb:{s00}:jobs:*");
  if (keys.length > 0) await redis.client.del(keys);
}

const retryJob = async (jobId: string) => (await retries.retry(tenant, [jobId])).get(jobId);

for (const where of ["in the outbox", "recorded", "gone from the queue"] as const) {
  test(`a failed job that is ${where} is tried again with what it was to send, and both ends are its history`, async () => {
    const jobId = await accept({ template: "welcome", needsScreening: true, ...EXTRAS });
    const [first] = await failAll();
    if (where !== "in the outbox") await record();
    if (where === "gone from the queue") await leaveRedis();
    expect(await retries.findContent(tenant, jobId)).toEqual({ channel: "email", payload: PAYLOAD });

    expect(await retryJob(jobId)).toEqual({ kind: "retried" });
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "pending", attempts: 0, result: null });
    expect(await retryJob(jobId)).toEqual({ kind: "not_failed" });
    const listed = await findJobs({ queue, finishedJobs }, tenant, { ...ANY_JOB, fromJobId: jobId }, 10);
    expect(listed.jobs.map(({ jobId: id, status }) => [id, status])).toEqual([[jobId, "pending"]]);
    for (const status of ["pending", "failed"] as const) {
      const { jobs } = await findJobs({ queue, finishedJobs }, tenant, { ...ANY_JOB, status, fromJobId: jobId }, 10);
      expect(jobs).toHaveLength(status === "pending" ? 1 : 0);
    }

    const [again, ...others] = await pull();
    if (again === undefined || first === undefined) throw new Error("both lives are pulled");
    expect(others).toEqual([]);
    const { recipient, payload, template, needsScreening } = first;
    expect(again).toMatchObject({ jobId, recipient, payload, template, needsScreening, ...EXTRAS, attempts: 0 });
    expect(waitsInLife(again)).toBe(0);
    expect(Math.abs((again.retriedAtMs ?? 0) - Date.now())).toBeLessThan(10_000);

    // Late messages of the former life change no state.
    await queue.settle(owner, [sending(first)]);
    expect((await queue.job(tenant, jobId))?.status).not.toBe("success");
    await queue.settle(owner, [sending(again)]);
    await record();
    await leaveRedis();
    const recorded = await eventStore.reader.job("acme", jobId);
    expect(recorded).toMatchObject({ status: "success", attempts: 1 });
    expect(recorded?.events.map(({ type }) => type)).toEqual(["failed", "sent"]);
    expect(await finishedJobs.count("acme", { ...ANY_JOB, fromJobId: jobId })).toBe(1);
    expect(await finishedJobs.count("acme", { ...ANY_JOB, fromJobId: jobId, status: "failed" })).toBe(0);
    expect(await retryJob(jobId)).toEqual({ kind: "not_failed" });
    expect(await retries.findContent(tenant, jobId)).toBeNull();
  });
}

test("a large payload is kept, too, and stored again", async () => {
  const payload = JSON.stringify({ to: "ann@example.com", html: "x".repeat(600_000) });
  const jobId = ids.next();
  stored.set(jobId, Buffer.from(payload));
  const large = { payload: "", stored: nameOfPayload(Buffer.from(payload)) };
  await queue.accept(tenant, null, { jobId, channel: "email", recipient: "", idempotency: null, ...large });
  await failAll();
  await record();
  await leaveRedis();
  stored.clear();
  expect(await retryJob(jobId)).toEqual({ kind: "retried" });
  expect(Buffer.from(stored.get(jobId) ?? "").toString()).toBe(payload);
  const [again] = await pull();
  expect(again?.stored).toEqual(large.stored);
  await failAll();
  await record();
});

test("what is charged is charged once more, and given back where the job is not queued", async () => {
  charged = [];
  const jobId = await accept();
  await failAll();
  await record();
  const full = { ...tenant, plan: { ...tenant.plan, queuedJobsMax: 0 } };
  expect((await retries.retry(full, [jobId])).get(jobId)).toEqual({ kind: "jobs" });
  expect(charged).toEqual([]);
  charged = ["none left"];
  expect(await retryJob(jobId)).toEqual({ kind: "refused", why: "no token is left" });
  charged = [];
  expect(await retryJob(jobId)).toEqual({ kind: "retried" });
  expect(charged).toEqual([jobId]);
  await failAll();
  await record();
});

test("what was charged for some jobs of a call is given back when another one cannot be made ready", async () => {
  charged = [];
  const jobIds = [await accept(), await accept()];
  await failAll();
  await record();
  let calls = 0;
  take = async (job) => {
    calls += 1;
    if (calls === 2) throw new UnavailableError("the registry is away");
    return charge(job);
  };
  try {
    await expect(retries.retry(tenant, jobIds)).rejects.toThrow("the registry is away");
    expect([calls, charged]).toEqual([2, []]);
  } finally {
    take = charge;
  }
  expect([...(await retries.retry(tenant, jobIds)).values()]).toEqual([{ kind: "retried" }, { kind: "retried" }]);
  await failAll();
  await record();
});

test("of two retries at once, the later one gives back nothing of what the other took", async () => {
  charged = [];
  const jobId = await accept();
  await failAll();
  await record();
  const bothAreReady = Promise.withResolvers<void>();
  const firstIsDone = Promise.withResolvers<void>();
  let calls = 0;
  take = async (job) => {
    calls += 1;
    if (calls === 1) {
      await bothAreReady.promise;
      return charge(job);
    }
    bothAreReady.resolve();
    await firstIsDone.promise;
    return { kind: "free" };
  };
  try {
    // Either may be the first to know that the job has failed.
    const both = [retryJob(jobId), retryJob(jobId)];
    expect(await Promise.race(both)).toEqual({ kind: "retried" });
    firstIsDone.resolve();
    const kinds = new Set((await Promise.all(both)).map((one) => one?.kind));
    expect(kinds).toEqual(new Set(["not_failed", "retried"]));
    expect(charged).toEqual([jobId]);
  } finally {
    take = charge;
  }
  await failAll();
  await record();
});

test("contents are sealed, each for its job, and a job of nobody's is unknown", async () => {
  const jobId = await accept();
  await failAll();
  await record();
  const { database } = sealedTarget(eventStore.target);
  const rows = await eventStore.reading.rows(`SELECT body, recipient_hash FROM ${database}.failed_payloads`);
  expect(rows.length).toBeGreaterThan(3);
  const texts = rows.map((row) => row.join(" ")).join("\n");
  expect(texts).not.toContain("secret");
  expect(texts).not.toContain("example.com");
  const [own] = await eventStore.reading.rows(
    `SELECT body FROM ${database}.failed_payloads WHERE job_id = '${jobId}' LIMIT 1`,
  );
  expect(seal.open("acme", jobId, String(own?.[0]))).toContain("a secret");
  expect(seal.open("bolt", jobId, String(own?.[0]))).toBeNull();
  expect(await retryJob(ids.next())).toEqual({ kind: "unknown" });
  const other = aTenant({ tenantId: "bolt", shard: 0 });
  expect((await retries.retry(other, [jobId])).get(jobId)).toEqual({ kind: "unknown" });
});

test("a content longer than the bound is not kept, even where there is room for it", async () => {
  const ofBytes = (bytes: number) => accept({ payload: JSON.stringify("x".repeat(bytes - 2)) });
  const [kept, tooLong] = [await ofBytes(engineLimits.keptBytesMax), await ofBytes(engineLimits.keptBytesMax + 1)];
  for (let left = 2; left > 0; left -= (await failAll()).length);
  expect([...(await queue.unrecordedContents(tenant, [kept, tooLong])).keys()]).toEqual([kept]);
  expect(await retryJob(tooLong)).toEqual({ kind: "not_kept" });
  await record();
});

test("contents in the outbox are bounded, for a tenant by what it leaves to others, and leave it with their batch", async () => {
  const payload = JSON.stringify({ to: "a@b.c", html: "x".repeat(250_000) });
  const most = Math.floor(engineLimits.keptOutboxBytesMax / 2 / payload.length);
  const jobs: string[] = [];
  for (let n = 0; n < most + 5; n += 1) jobs.push(await accept({ payload }));
  for (let left = jobs.length; left > 0; left -= (await failAll()).length);
  const kept = await queue.unrecordedContents(tenant, jobs);
  expect(kept.size).toBeGreaterThan(most - 5);
  expect(kept.size).toBeLessThanOrEqual(most);
  expect(await redis.client.hget("wb:{s00}:keeping", "acme")).toBe(String(kept.size * payload.length));
  await record();
  expect(await redis.client.exists("wb:{s00}:keeping")).toBe(0);
  const dropped = jobs.find((jobId) => !kept.has(jobId)) ?? "";
  expect(await retryJob(dropped)).toEqual({ kind: "not_kept" });
  expect((await queue.job(tenant, dropped))?.status).toBe("failed");
});
