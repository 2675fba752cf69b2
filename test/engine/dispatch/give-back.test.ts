import { afterAll, beforeAll, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import type { Channel } from "../../../src/domain/channels/channel.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import { isFinal, type JobRecord, type QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import { Dispatcher } from "../../../src/engine/dispatch/dispatcher.ts";
import { giveBack } from "../../../src/engine/dispatch/give-back.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import { NO_HISTORIES } from "../../support/no-histories.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { aTenant, createDirectory } from "../../support/tenants.ts";

const IN_TIME_MS = 30_000;
const telemetry = new QuietTelemetry();
const jobIds = new JobIds(systemClock, systemRandom);
const tenant = aTenant({ channels: new Set(["wallet"]) });
let redis: RedisServer;
let queue: RedisQueue;

beforeAll(async () => {
  redis = await startRedis();
  const address = { kind: "socket", path: redis.path } as const;
  queue = new RedisQueue({ channels: CHANNELS, address, clock: systemClock, random: systemRandom, telemetry });
  await queue.start();
}, IN_TIME_MS);
afterAll(async () => {
  await queue?.stop();
  await redis?.stop();
}, IN_TIME_MS);

const FAILED: Outcome = { kind: "failed", error: "no" };

/** Ends each job as its payload says, and records each give-back. */
class PaidChannel implements Channel {
  readonly name = "wallet";
  readonly slots = 64;
  readonly givenBack: string[] = [];
  tries = 0;
  /** Tries that fail before one succeeds. */
  failures = 0;
  /** The queue's records of a job while it is given back. */
  readonly seen: (JobRecord | null)[] = [];

  async screen({ payload }: QueuedJob): Promise<Outcome | null> {
    return payload === '"bad"' ? FAILED : null;
  }

  async deliver({ payload, attempts }: QueuedJob): Promise<Outcome> {
    if (payload === '"fails"') return FAILED;
    if (payload === '"spent"') return attempts < 2 ? { kind: "retry", why: "busy" } : FAILED;
    return { kind: "delivered", result: {} };
  }

  async giveBack({ jobId }: QueuedJob): Promise<void> {
    this.tries += 1;
    this.seen.push(await queue.job(tenant, jobId));
    if (this.tries <= this.failures) throw new UnavailableError("the registry is away");
    this.givenBack.push(jobId);
  }
}

function dispatcher(channel: Channel): Dispatcher {
  const worker = new Dispatcher({
    queue,
    directory: createDirectory([tenant]),
    channels: [channel],
    histories: NO_HISTORIES,
    suppressions: { fill: async () => true },
    owner: crypto.randomUUID(),
    shards: 1,
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
  worker.start();
  return worker;
}

async function accept(end: string, needsScreening = false): Promise<string> {
  const job = {
    jobId: jobIds.next(),
    channel: "wallet",
    recipient: "p",
    payload: JSON.stringify(end),
    idempotency: null,
  } as const;
  await queue.accept(tenant, 1_000_000, needsScreening ? { ...job, needsScreening } : job);
  return job.jobId;
}

const finalJob = (jobId: string) =>
  eventually("the job ends", async () => {
    const job = await queue.job(tenant, jobId);
    return job !== null && isFinal(job.status) ? job : null;
  });

test(
  "a failed job gives back what it took once, whether it failed, was spent or was refused before its delivery",
  async () => {
    const channel = new PaidChannel();
    const worker = dispatcher(channel);
    const failing = [await accept("fails"), await accept("spent"), await accept("bad", true)];
    const fine = await accept("delivered");
    for (const jobId of failing) expect((await finalJob(jobId)).status).toBe("failed");
    expect((await finalJob(fine)).status).toBe("success");
    expect(channel.givenBack.toSorted()).toEqual(failing.toSorted());
    await worker.stop();
  },
  IN_TIME_MS,
);

test(
  "no job fails before its give-back succeeds, however many tries that takes",
  async () => {
    const channel = new PaidChannel();
    channel.failures = 3;
    const worker = dispatcher(channel);
    const jobId = await accept("fails");
    expect((await finalJob(jobId)).status).toBe("failed");
    expect(channel.tries).toBe(4);
    expect(channel.seen.map((job) => job?.status)).toEqual(["running", "running", "running", "running"]);
    await worker.stop();
  },
  IN_TIME_MS,
);

test(
  "nothing is given back while the lease is in doubt, nor by a term that ends meanwhile",
  async () => {
    const channel = new PaidChannel();
    const ports = { channels: new Map([["wallet", channel]]), clock: systemClock, random: systemRandom, telemetry };
    const job = { jobId: jobIds.next(), tenantId: tenant.tenantId, channel: "wallet", entryId: "1-1", recipient: "p" };
    const failed: QueuedJob = { ...job, attempts: 0, suppressed: null, payload: "{}" };
    const ended = new AbortController();
    const term = { isHeld: false, looks: 0 };
    const isSurelyHeld = () => {
      term.looks += 1;
      return term.isHeld;
    };
    const given = giveBack(ports, failed, { ended: ended.signal, isSurelyHeld });
    await eventually("it looks again", () => term.looks > 2);
    expect(channel.tries).toBe(0);
    term.isHeld = true;
    expect(await given).toBe(true);
    expect(channel.givenBack).toEqual([failed.jobId]);
    term.isHeld = false;
    const late = giveBack(ports, failed, { ended: ended.signal, isSurelyHeld });
    ended.abort();
    expect([await late, channel.tries]).toEqual([false, 1]);
  },
  IN_TIME_MS,
);

test(
  "a process that stops meanwhile leaves both steps to the next owner",
  async () => {
    const stuck = new PaidChannel();
    stuck.failures = Number.POSITIVE_INFINITY;
    const first = dispatcher(stuck);
    const jobId = await accept("fails");
    await eventually("it is tried", () => stuck.tries > 1);
    await first.stop();
    expect(isFinal((await queue.job(tenant, jobId))?.status ?? "failed")).toBe(false);
    const channel = new PaidChannel();
    const second = dispatcher(channel);
    expect((await finalJob(jobId)).status).toBe("failed");
    expect(channel.givenBack).toEqual([jobId]);
    await second.stop();
  },
  IN_TIME_MS,
);
