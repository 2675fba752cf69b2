import { afterAll, beforeAll, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import { isFinal } from "../../../src/domain/jobs/job.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import { Dispatcher } from "../../../src/engine/dispatch/dispatcher.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import { NO_HISTORIES } from "../../support/no-histories.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { RecordingChannel } from "../../support/recording-channel.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { aTenant, createDirectory } from "../../support/tenants.ts";

/** A channel whose senders may be used when the test says so. */
class PacedChannel extends RecordingChannel {
  readonly asked = new Map<string, number>();

  constructor(private readonly waitMsOf: (tenantId: string) => number) {
    super(() => ({ kind: "delivered", result: {} }));
  }

  paceMs({ tenantId }: Tenant): number {
    this.asked.set(tenantId, (this.asked.get(tenantId) ?? 0) + 1);
    return this.waitMsOf(tenantId);
  }
}

/** A channel whose sender may send once in 5 ms, and uses its turn as it begins to. */
class SlowSender extends RecordingChannel {
  early = 0;
  private nextMs = 0;

  constructor() {
    super(() => {
      if (this.paceMs() > 0) this.early += 1;
      this.nextMs = performance.now() + 5;
      return { kind: "delivered", result: {} };
    });
  }

  paceMs(): number {
    return Math.max(0, this.nextMs - performance.now());
  }
}

const tenants = [aTenant({ tenantId: "paced", shard: 0 }), aTenant({ tenantId: "free", shard: 0 })] as const;
const telemetry = new QuietTelemetry();
const jobIds = new JobIds(systemClock, systemRandom);
let redis: RedisServer;
let queue: RedisQueue;

beforeAll(async () => {
  redis = await startRedis();
  queue = new RedisQueue({
    channels: CHANNELS,
    address: { kind: "socket", path: redis.path },
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
  await queue.start();
}, 90_000);
afterAll(async () => {
  await queue.stop();
  await redis.stop();
}, 90_000);

async function accept(tenant: Tenant): Promise<string> {
  const job = {
    jobId: jobIds.next(),
    channel: "email",
    recipient: "a@b.test",
    payload: "{}",
    idempotency: null,
  } as const;
  await queue.accept(tenant, 1_000_000, job);
  return job.jobId;
}

function createDispatcher(channel: RecordingChannel): Dispatcher {
  return new Dispatcher({
    queue,
    directory: createDirectory(tenants),
    channels: [channel],
    histories: NO_HISTORIES,
    suppressions: { fill: async () => true },
    owner: "one",
    shards: 1,
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
}

async function ended(tenant: Tenant, ids: readonly string[]) {
  const jobs = await Promise.all(ids.map((jobId) => queue.job(tenant, jobId)));
  return jobs.every((job) => job !== null && isFinal(job.status)) ? jobs : null;
}

test("a tenant whose sender must wait is asked again when it may send, which costs no attempt and delays nobody", async () => {
  const [paced, free] = tenants;
  let isOpen = false;
  const channel = new PacedChannel((tenantId) => (tenantId === "paced" && !isOpen ? 20 : 0));
  const waiting = [await accept(paced), await accept(paced)];
  const passing = [await accept(free), await accept(free)];
  const dispatcher = createDispatcher(channel);
  dispatcher.start();
  await eventually("the free tenant's jobs end", () => ended(free, passing));
  await eventually("the paced one was asked again", () => (channel.asked.get("paced") ?? 0) >= 3);
  expect(channel.delivered.toSorted()).toEqual(passing.toSorted());
  isOpen = true;
  const jobs = await eventually("the paced tenant's jobs end", () => ended(paced, waiting));
  for (const job of jobs) expect(job).toMatchObject({ status: "success", attempts: 1 });
  await dispatcher.stop();
}, 90_000);

test("no delivery begins before its channel's pace allows it, however many had their slots at once", async () => {
  const [paced] = tenants;
  const channel = new SlowSender();
  const waiting = await Promise.all(Array.from({ length: 40 }, () => accept(paced)));
  const dispatcher = createDispatcher(channel);
  dispatcher.start();
  const jobs = await eventually("all end", () => ended(paced, waiting));
  for (const job of jobs) expect(job).toMatchObject({ status: "success", attempts: 1 });
  expect(channel.delivered.length).toBe(40);
  expect(channel.early).toBe(0);
  await dispatcher.stop();
}, 90_000);
