import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import type { Clock } from "../../../src/domain/clock.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { JobRecord } from "../../../src/domain/jobs/job.ts";
import { isFinal } from "../../../src/domain/jobs/job.ts";
import { limits } from "../../../src/domain/limits.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import { Dispatcher } from "../../../src/engine/dispatch/dispatcher.ts";
import type { SuppressionFiller } from "../../../src/engine/dispatch/fill-suppressions.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { JobScheduler } from "../../../src/engine/schedule/job-schedule.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import { NO_HISTORIES } from "../../support/no-histories.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { RecordingChannel } from "../../support/recording-channel.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { aTenant, createDirectory } from "../../support/tenants.ts";

const SHARDS = 4;
let redis: RedisServer;
const telemetry = new QuietTelemetry();
const jobIds = new JobIds(systemClock, systemRandom);
const queues: RedisQueue[] = [];
let queue: RedisQueue;

const tenants = Array.from({ length: 8 }, (_, i) => aTenant({ tenantId: `tenant-${i}`, shard: i % SHARDS }));

beforeAll(async () => {
  redis = await startRedis();
  queue = await connect();
});
beforeEach(async () => {
  await redis.client.flushall();
});
afterAll(async () => {
  for (const open of queues) await open.stop();
  await redis.stop();
});

/** A connection of its own for each process of the test. */
async function connect(): Promise<RedisQueue> {
  const address = { kind: "socket", path: redis.path } as const;
  const opened = new RedisQueue({ channels: CHANNELS, address, clock: systemClock, random: systemRandom, telemetry });
  await opened.start();
  queues.push(opened);
  return opened;
}

interface Circumstances {
  readonly over?: RedisQueue;
  readonly suppressions?: SuppressionFiller;
  readonly served?: readonly Tenant[];
  readonly clock?: Clock;
}

function dispatcher(owner: string, channel: RecordingChannel, circumstances: Circumstances = {}): Dispatcher {
  const { over = queue, suppressions = { fill: async () => true }, served = tenants } = circumstances;
  return new Dispatcher({
    queue: over,
    directory: createDirectory(served),
    channels: [channel],
    histories: NO_HISTORIES,
    suppressions,
    owner,
    shards: SHARDS,
    clock: circumstances.clock ?? systemClock,
    random: systemRandom,
    telemetry,
  });
}

async function accept(tenant: Tenant, recipient = "ann@example.com"): Promise<string> {
  const job = { jobId: jobIds.next(), channel: "email", recipient, payload: "{}", idempotency: null } as const;
  const answer = await queue.accept(tenant, 1_000_000, job);
  if (answer.kind !== "accepted") throw new Error(answer.kind);
  return answer.jobId;
}

async function acceptMany(count: number): Promise<{ tenant: Tenant; jobId: string }[]> {
  return await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const tenant = tenants[i % tenants.length] ?? aTenant();
      return { tenant, jobId: await accept(tenant) };
    }),
  );
}

async function finalJob(tenant: Tenant, jobId: string): Promise<JobRecord> {
  return await eventually("the job ends", async () => {
    const job = await queue.job(tenant, jobId);
    return job !== null && isFinal(job.status) ? job : null;
  });
}

test("every job is delivered once and ends", async () => {
  const channel = new RecordingChannel(() => ({ kind: "delivered", result: { ok: true } }));
  const jobs = await acceptMany(2000);
  const worker = dispatcher("one", channel);
  worker.start();
  for (const { tenant, jobId } of jobs) {
    expect(await finalJob(tenant, jobId)).toMatchObject({ status: "success", attempts: 1, result: { ok: true } });
  }
  expect(channel.delivered.length).toBe(2000);
  expect(new Set(channel.delivered).size).toBe(2000);
  await worker.stop();
});

test("a job that waits with its owner is cancelled by any process, and one in flight is not", async () => {
  const tenant = aTenant({ tenantId: "tenant-0", shard: 0, plan: { ...aTenant().plan, deliveriesPerSecond: 0.05 } });
  const release = Promise.withResolvers<void>();
  const channel = new RecordingChannel(async () => {
    await release.promise;
    return { kind: "delivered", result: {} };
  });
  const worker = dispatcher("one", channel, { served: [tenant] });
  worker.start();
  const [flying, waiting] = [await accept(tenant), await accept(tenant)];
  await eventually("one is in flight, the other was pulled", async () => {
    const jobs = [await queue.job(tenant, flying), await queue.job(tenant, waiting)];
    return channel.inFlight === 1 && jobs.every((job) => job?.status === "running");
  });
  const discarded: string[] = [];
  const charges = { discard: async (_: string, { jobId }: { readonly jobId: string }) => void discarded.push(jobId) };
  const payloads = { remove: async () => undefined };
  const eventStore = { job: async () => null };
  const front = await connect();
  const schedule = new JobScheduler({ queue: front, eventStore, payloads, charges, clock: systemClock, telemetry });
  expect(await schedule.cancel(tenant, waiting)).toBe("canceled");
  expect(discarded).toEqual([waiting]);
  expect(await queue.job(tenant, waiting)).toMatchObject({ status: "suppressed", result: { reason: "canceled" } });
  expect(await schedule.cancel(tenant, flying)).toBe("begun");
  release.resolve();
  expect(await finalJob(tenant, flying)).toMatchObject({ status: "success" });
  expect(await schedule.cancel(tenant, flying)).toBe("ended");
  await worker.stop();
  expect(channel.delivered).toEqual([flying]);
});

test("jobs that arrive while the dispatcher idles are delivered without waiting for a poll", async () => {
  const channel = new RecordingChannel(() => ({ kind: "delivered", result: {} }));
  const neverPolls: Clock = {
    ...systemClock,
    setTimer: (delayMs, run) =>
      delayMs === engineLimits.idlePollMs ? { cancel() {} } : systemClock.setTimer(delayMs, run),
  };
  const worker = dispatcher("one", channel, { clock: neverPolls });
  worker.start();
  await eventually("it owns all shards", () => worker.shards.length === SHARDS);
  for (let i = 0; i < 20; i += 1) {
    const tenant = tenants[i % tenants.length] ?? aTenant();
    await finalJob(tenant, await accept(tenant));
  }
  await worker.stop();
});

test("a transient failure is retried, a permanent one is not", async () => {
  const seen = new Map<string, number>();
  const channel = new RecordingChannel((job) => {
    const tries = (seen.get(job.jobId) ?? 0) + 1;
    seen.set(job.jobId, tries);
    if (job.recipient === "never@example.com") return { kind: "failed", error: "refused", detail: { code: 550 } };
    return tries < 3 ? { kind: "retry", why: "busy" } : { kind: "delivered", result: {} };
  });
  const worker = dispatcher("one", channel);
  worker.start();
  const [tenant = aTenant()] = tenants;
  const transient = await accept(tenant);
  const permanent = await accept(tenant, "never@example.com");
  expect(await finalJob(tenant, transient)).toMatchObject({ status: "success", attempts: 3 });
  expect(await finalJob(tenant, permanent)).toMatchObject({
    status: "failed",
    attempts: 1,
    result: { error: "refused", code: 550 },
    events: [{ type: "failed", result: { error: "refused" } }],
  });
  await worker.stop();
});

test("a suppressed recipient is never sent to", async () => {
  const channel = new RecordingChannel(() => ({ kind: "delivered", result: {} }));
  const [tenant = aTenant()] = tenants;
  await redis.client.hset("wb:{s00}:suppressed:tenant-0", "gone@example.com", "unsubscribed");
  const jobId = await accept(tenant, "gone@example.com");
  const worker = dispatcher("one", channel);
  worker.start();
  expect(await finalJob(tenant, jobId)).toMatchObject({
    status: "suppressed",
    result: { reason: "unsubscribed" },
    events: [{ type: "suppressed", result: { reason: "unsubscribed" } }],
  });
  expect(channel.delivered).toEqual([]);
  await worker.stop();
});

test("a channel that throws costs an attempt, not the shard", async () => {
  let calls = 0;
  const channel = new RecordingChannel(() => {
    calls += 1;
    if (calls === 1) throw new Error("a defect");
    return { kind: "delivered", result: {} };
  });
  const worker = dispatcher("one", channel);
  worker.start();
  const [tenant = aTenant()] = tenants;
  expect(await finalJob(tenant, await accept(tenant))).toMatchObject({ status: "success", attempts: 2 });
  await worker.stop();
});

test("a drain finishes the deliveries in flight and leaves the rest to the next owner", async () => {
  const release: (() => void)[] = [];
  const slow = new RecordingChannel(async () => {
    await new Promise<void>((resolve) => release.push(resolve));
    return { kind: "delivered", result: {} };
  });
  const [tenant = aTenant()] = tenants;
  const ids = await Promise.all(Array.from({ length: 100 }, () => accept(tenant)));
  const first = dispatcher("one", slow);
  first.start();
  await eventually("the window is full", () => slow.inFlight === 64);
  const stopped = first.stop();
  for (const end of release) end();
  await stopped;
  expect(slow.delivered.length).toBe(64);
  const rest = new RecordingChannel(() => ({ kind: "delivered", result: {} }));
  const second = dispatcher("two", rest);
  second.start();
  for (const jobId of ids) expect((await finalJob(tenant, jobId)).attempts).toBe(1);
  expect(rest.delivered.length).toBe(36);
  await second.stop();
});

test("two processes share the shards, and one takes over from the other", async () => {
  const channels = [0, 1].map(() => new RecordingChannel(() => ({ kind: "delivered", result: {} })));
  const [one, two] = channels;
  if (!one || !two) throw new Error("two channels");
  const a = dispatcher("a", one, { over: await connect() });
  const b = dispatcher("b", two, { over: await connect() });
  a.start();
  b.start();
  await eventually("each holds its half", async () => {
    const owners = await Promise.all(
      [0, 1, 2, 3].map((s) => redis.client.hget(`wb:{s0${s}}:lease:dispatcher`, "owner")),
    );
    return owners.filter((owner) => owner === "a").length === 2 && owners.filter((owner) => owner === "b").length === 2;
  });
  const jobs = await acceptMany(800);
  for (const { tenant, jobId } of jobs) await finalJob(tenant, jobId);
  expect(one.delivered.length).toBe(400);
  expect(two.delivered.length).toBe(400);
  await a.stop();
  const more = await acceptMany(80);
  for (const { tenant, jobId } of more) await finalJob(tenant, jobId);
  expect(two.delivered.length).toBe(480);
  await b.stop();
});

test("Redis may die and come back: nothing is lost, and nothing settled is sent again", async () => {
  const channel = new RecordingChannel(async () => {
    await Bun.sleep(5);
    return { kind: "delivered", result: {} };
  });
  const worker = dispatcher("one", channel);
  worker.start();
  const jobs = await acceptMany(3000);
  await eventually("some are delivered", () => channel.delivered.length > 200);
  await redis.kill();
  await redis.restart();
  for (const { tenant, jobId } of jobs) expect((await finalJob(tenant, jobId)).status).toBe("success");
  expect(new Set(channel.delivered).size).toBe(3000);
  expect(channel.delivered.length).toBe(3000);
  await worker.stop();
}, 90_000);

test("nothing is delivered before the shard's suppressions are loaded, however often loading fails", async () => {
  const channel = new RecordingChannel(() => ({ kind: "delivered", result: {} }));
  const tenant = tenants[0] ?? aTenant();
  const { promise: filled, resolve: fillNow } = Promise.withResolvers<boolean>();
  let calls = 0;
  const fill = async () => {
    calls += 1;
    if (calls <= SHARDS) throw new UnavailableError("the registry is away");
    return filled;
  };
  const worker = dispatcher("one", channel, { suppressions: { fill } });
  worker.start();
  const jobId = await accept(tenant);
  await eventually("every shard asked again", () => calls >= 2 * SHARDS);
  expect(await queue.job(tenant, jobId)).toMatchObject({ status: "pending" });
  expect(channel.delivered).toEqual([]);
  fillNow(true);
  expect(await finalJob(tenant, jobId)).toMatchObject({ status: "success" });
  await worker.stop();
});

test("nothing is sent twice when Redis is silent for longer than a lease", async () => {
  const silenceMs = limits.leaseTtlMs + 2_500;
  const slow = () => new RecordingChannel(() => Bun.sleep(silenceMs).then(() => ({ kind: "delivered", result: {} })));
  const channels = [slow(), slow()] as const;
  const workers = [
    dispatcher("a", channels[0], { over: await connect() }),
    dispatcher("b", channels[1], { over: await connect() }),
  ];
  for (const worker of workers) worker.start();
  const jobs = await acceptMany(20);
  const delivered = () => channels.flatMap((channel) => channel.delivered);
  await eventually("all are in flight", () => delivered().length === 20);
  await redis.client.call("CLIENT", "PAUSE", String(silenceMs), "ALL");
  for (const { tenant, jobId } of jobs) {
    const job = await eventually(
      "the job ends",
      async () => {
        const found = await queue.job(tenant, jobId).catch(() => null);
        return found !== null && isFinal(found.status) ? found : null;
      },
      2 * silenceMs,
    );
    expect(job).toMatchObject({ status: "success", attempts: 1 });
  }
  expect(delivered().length).toBe(20);
  await Promise.all(workers.map((worker) => worker.stop()));
}, 300_000);

test("a stopping process hands its shards over at once, whatever it still has to deliver", async () => {
  const stuck = new RecordingChannel(
    (_, signal) =>
      new Promise((resolve) => signal.addEventListener("abort", () => resolve({ kind: "retry", why: "broken off" }))),
  );
  const first = dispatcher("one", stuck, { over: await connect() });
  first.start();
  const held = await acceptMany(8);
  await eventually("all are in flight", () => stuck.inFlight === 8);
  const channel = new RecordingChannel(() => ({ kind: "delivered", result: {} }));
  const second = dispatcher("two", channel, { over: await connect() });
  second.start();
  await eventually("the second has its share", async () => {
    const owners = await Promise.all(
      [0, 1, 2, 3].map((s) => redis.client.hget(`wb:{s0${s}}:lease:dispatcher`, "owner")),
    );
    return owners.filter((owner) => owner === "two").length === 2;
  });
  const stopped = first.stop();
  const begunMs = performance.now();
  for (const { tenant, jobId } of await acceptMany(8)) {
    expect(await finalJob(tenant, jobId)).toMatchObject({ status: "success", attempts: 1 });
  }
  expect(performance.now() - begunMs).toBeLessThan(limits.leaseTtlMs);
  await stopped;
  // They were broken off where they were in flight, and each is tried again.
  for (const { tenant, jobId } of held) {
    expect(await finalJob(tenant, jobId)).toMatchObject({ status: "success", attempts: 2 });
  }
  await second.stop();
}, 300_000);
