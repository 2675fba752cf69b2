import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { UnavailableError } from "../../../src/domain/errors.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { EventType } from "../../../src/domain/jobs/event.ts";
import { fallbackId } from "../../../src/domain/jobs/fallback.ts";
import { isFinal, type JobRecord } from "../../../src/domain/jobs/job.ts";
import type { NewJob } from "../../../src/domain/jobs/queue.ts";
import { Dispatcher } from "../../../src/engine/dispatch/dispatcher.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { RecordingChannel } from "../../support/recording-channel.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { aTenant, createDirectory } from "../../support/tenants.ts";

const telemetry = new QuietTelemetry();
const jobIds = new JobIds(systemClock, systemRandom);
const tenant = aTenant({ tenantId: "acme", shard: 0 });
let redis: RedisServer;
let queue: RedisQueue;
let channel: RecordingChannel;
let dispatcher: Dispatcher;
/** Jobs that have left the queue; null: the queue cannot be reached. */
let recorded: JobRecord[] | null;
let looks = 0;

beforeAll(async () => {
  redis = await startRedis();
  const address = { kind: "socket", path: redis.path } as const;
  queue = new RedisQueue({ channels: CHANNELS, address, clock: systemClock, random: systemRandom, telemetry });
  await queue.start();
});
beforeEach(async () => {
  await redis.client.flushall();
  recorded = [];
  channel = new RecordingChannel(() => ({ kind: "delivered", result: {} }));
  dispatcher = new Dispatcher({
    queue,
    directory: createDirectory([tenant]),
    channels: [channel],
    suppressions: { fill: async () => true },
    histories: {
      queue,
      eventStore: {
        job: async (_, jobId) => {
          looks += 1;
          if (recorded === null) throw new UnavailableError("no event store");
          return recorded.find((job) => job.jobId === jobId) ?? null;
        },
      },
    },
    owner: jobIds.next(),
    shards: 1,
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
});
afterAll(async () => {
  await queue.stop();
  await redis.stop();
});

async function accept(job: Partial<NewJob> = {}): Promise<string> {
  const known = {
    jobId: jobIds.next(),
    channel: "email",
    recipient: "ann@example.com",
    payload: '{"to":"ann"}',
  } as const;
  const answer = await queue.accept(tenant, null, { ...known, idempotency: null, ...job });
  if (answer.kind !== "accepted") throw new Error(answer.kind);
  return answer.jobId;
}

/** A job as the front door queues it, which is due. */
function acceptFallback(mainJobId: string, number = 1): Promise<string> {
  const fallback = { mainJobId, number, afterMs: 60_000, unless: ["delivered"] } as const;
  return accept({ jobId: fallbackId(mainJobId, number), dueMs: Date.now() - 1, fallback, needsScreening: true });
}

async function ended(jobId: string): Promise<JobRecord> {
  return await eventually("the job ends", async () => {
    const job = await queue.job(tenant, jobId);
    return job !== null && isFinal(job.status) ? job : null;
  });
}

async function observe(jobId: string, type: EventType): Promise<void> {
  expect(await queue.observe(tenant, { jobId, type, result: {}, suppress: null, known: null })).toBe("recorded");
}

const NOT_NEEDED = { status: "suppressed", result: { reason: "not_needed" } } as const;

test("a fallback is sent if nothing says that its message was received, and not if something does", async () => {
  dispatcher.start();
  const [lost, received] = [await accept(), await accept()];
  await Promise.all([ended(lost), ended(received)]);
  await observe(received, "opened");
  const [needed, unneeded] = [await acceptFallback(lost), await acceptFallback(received)];
  expect(await ended(needed)).toMatchObject({ status: "success" });
  expect(await ended(unneeded)).toMatchObject(NOT_NEEDED);
  expect((await ended(unneeded)).events).toMatchObject([{ type: "suppressed", result: { reason: "not_needed" } }]);
  // The second one follows the first.
  await observe(needed, "delivered");
  expect(await ended(await acceptFallback(lost, 2))).toMatchObject(NOT_NEEDED);
  expect(channel.delivered).toEqual([lost, received, needed]);
  await dispatcher.stop();
});

test("a fallback whose message was never queued is not sent", async () => {
  dispatcher.start();
  expect(await ended(await acceptFallback(jobIds.next()))).toMatchObject(NOT_NEEDED);
  expect(channel.delivered).toEqual([]);
  await dispatcher.stop();
});

test("a fallback of a message that has left the queue waits for the event store, and follows what it says", async () => {
  dispatcher.start();
  recorded = null;
  const main = jobIds.next();
  const before = looks;
  const fallback = await acceptFallback(main);
  await eventually("it was looked for", async () => looks > before);
  await eventually("it waits", async () => (await redis.client.hexists("wb:{s00}:parked", fallback)) === 1);
  expect(await queue.job(tenant, fallback)).toMatchObject({ status: "pending", attempts: 0 });
  const events = [{ eventId: 1, type: "delivered", result: {} }] as const;
  const known = {
    jobId: main,
    tenantId: "acme",
    channel: "email",
    status: "success",
    attempts: 1,
    result: {},
  } as const;
  recorded = [{ ...known, events }];
  await redis.client.zadd("wb:{s00}:later", 0, fallback);
  expect(await ended(fallback)).toMatchObject(NOT_NEEDED);
  expect(channel.delivered).toEqual([]);
  await dispatcher.stop();
});
