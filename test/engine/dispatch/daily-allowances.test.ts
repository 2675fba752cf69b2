import { expect, test } from "bun:test";
import { TransportError } from "../../../src/domain/errors.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import { utcDayAt } from "../../../src/domain/tenants/warm-up.ts";
import { DailyAllowances } from "../../../src/engine/dispatch/daily-allowances.ts";
import { Dispatcher } from "../../../src/engine/dispatch/dispatcher.ts";
import { InstantQueue } from "../../support/memory-redis/instant-queue.ts";
import { MemoryQueue } from "../../support/memory-redis/memory-queue.ts";
import { NO_HISTORIES } from "../../support/no-histories.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { RecordingChannel } from "../../support/recording-channel.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { aTenant } from "../../support/tenants.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const MIDNIGHT_MS = Date.UTC(2026, 2, 8);
const MINUTE_MS = 60_000;
const SENDER = { fromAddress: "a@new.test", fromName: null, smtpUrl: null };

/** In the first week of its warm-up: 50 a day. */
const warming = aTenant({ tenantId: "warming", emailSender: { ...SENDER, warmUpFrom: "2026-03-05" } });
const other = aTenant({ tenantId: "other" });

/** Two minutes before midnight: an engine on a queue in memory, on a clock of its own. */
function aWorld(provider: () => Outcome = () => ({ kind: "delivered", result: {} })) {
  const clock = new VirtualClock(MIDNIGHT_MS - 2 * MINUTE_MS);
  const random = new SeededRandom(3);
  const state = new InstantQueue(() => clock.nowMs(), random);
  const queue = new MemoryQueue(state.server, clock, random);
  const jobIds = new JobIds(clock, random);
  const channel = new RecordingChannel(provider);
  const tenants = new Map<string, Tenant>([warming, other].map((tenant) => [tenant.tenantId, tenant]));
  let starts = 0;
  return {
    clock,
    random,
    tenants,
    get sent() {
      return channel.delivered.length;
    },
    start(over = queue) {
      const dispatcher = new Dispatcher({
        queue: over,
        directory: { byApiKey: () => null, byId: (tenantId) => tenants.get(tenantId) ?? null },
        channels: [channel],
        histories: NO_HISTORIES,
        suppressions: { fill: async () => true },
        owner: `p${(starts += 1)}`,
        shards: 1,
        clock,
        random,
        telemetry: new QuietTelemetry(),
      });
      dispatcher.start();
      return dispatcher;
    },
    suppress(recipient: string) {
      state.now((each) => each.putSuppression(warming, recipient, "manual"));
    },
    accept(count: number, tenant = warming, recipient = "ann@example.com") {
      return Array.from({ length: count }, () => {
        const jobId = jobIds.next();
        const job = {
          jobId,
          channel: "email",
          recipient,
          payload: "{}",
          idempotency: null,
        } as const;
        state.now((each) => each.accept(tenant, 1_000_000, job));
        return jobId;
      });
    },
    statuses(jobs: readonly string[], tenant = warming) {
      const counts: Record<string, number> = {};
      for (const jobId of jobs) {
        const job = state.jobNow(tenant, jobId);
        const key = `${job?.status} after ${job?.attempts}`;
        counts[key] = (counts[key] ?? 0) + 1;
      }
      return counts;
    },
    async stop(dispatcher: Dispatcher) {
      const stopped = dispatcher.stop();
      await clock.advance(10_000);
      await stopped;
    },
    queue,
  };
}

/** The queue has answered, and a moment passes. */
async function answered(clock: VirtualClock): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
  await clock.advance(1);
}

/** The allowances of a term on a queue in memory, and one of so many a day. */
function someAllowances(perDay: number) {
  const clock = new VirtualClock(MIDNIGHT_MS);
  const random = new SeededRandom(3);
  const state = new InstantQueue(() => clock.nowMs(), random);
  const lease = state.now((queue) => queue.acquire(0, "dispatcher", "one", null));
  if (lease === null) throw new Error("the lease is free");
  const telemetry = new QuietTelemetry();
  const allowances = new DailyAllowances({
    queue: new MemoryQueue(state.server, clock, random),
    lease,
    clock,
    telemetry,
  });
  const tenantQueue = { tenantId: "warming", channel: "email" } as const;
  return { allowances, clock, allowance: { tenantQueue, day: utcDayAt(clock.nowMs()), perDay } };
}

test("jobs over the day's allowance stay pending and untried, and go out the next day", async () => {
  const world = aWorld();
  const dispatcher = world.start();
  const jobs = world.accept(130);
  await world.clock.advance(2 * MINUTE_MS - 1);
  expect(world.statuses(jobs)).toEqual({ "success after 1": 50, "pending after 0": 80 });
  await world.clock.advance(10_000);
  expect(world.statuses(jobs)).toEqual({ "success after 1": 100, "pending after 0": 30 });
  await world.stop(dispatcher);
});

test("a used-up allowance delays no other tenant", async () => {
  const world = aWorld();
  const dispatcher = world.start();
  world.accept(60);
  await world.clock.advance(5_000);
  const jobs = world.accept(200, other);
  await world.clock.advance(1_000);
  expect(world.statuses(jobs, other)).toEqual({ "success after 1": 200 });
  await world.stop(dispatcher);
});

test("no day exceeds its allowance, whoever takes over in between", async () => {
  const world = aWorld();
  const jobs = world.accept(70);
  let answersLeft = 25;
  // A process that dies in the middle of its work: from some call on, none of its calls arrives.
  const dying = new (class extends MemoryQueue {
    override async settle(...call: Parameters<MemoryQueue["settle"]>) {
      answersLeft -= 1;
      return answersLeft < 0 ? new Promise<never>(() => {}) : super.settle(...call);
    }
    override async renew(...call: Parameters<MemoryQueue["renew"]>) {
      return answersLeft < 0 ? new Promise<never>(() => {}) : super.renew(...call);
    }
  })(world.queue.server, world.clock, world.random);
  world.start(dying);
  await world.clock.advance(5_000);
  const sentBefore = world.sent;
  expect(sentBefore).toBeGreaterThan(20);
  const heir = world.start();
  await world.clock.advance(60_000);
  // The heir repeats the messages that the dead process sent without recording them; all of them count.
  expect(world.sent).toBeGreaterThanOrEqual(48);
  expect(world.sent).toBeLessThanOrEqual(50);
  expect(world.statuses(jobs)["pending after 0"]).toBeGreaterThanOrEqual(20);
  await world.stop(heir);
});

test("a restart loses only the units that were in memory", async () => {
  const world = aWorld();
  const jobs = world.accept(130);
  const first = world.start();
  await world.clock.advance(3_000);
  await world.stop(first);
  const second = world.start();
  await world.clock.advance(5_000);
  expect(world.statuses(jobs)).toEqual({ "success after 1": 50, "pending after 0": 80 });
  await world.stop(second);
});

test.each<[string, { readonly isUncounted: true } | { readonly isUnsent: true }]>([
  ["waits for its turn at a destination", { isUncounted: true }],
  ["was not taken by its provider", { isUnsent: true }],
])("a message that %s does not count as sent", async (_, flag) => {
  let refusals = 45;
  const world = aWorld(() => {
    refusals -= 1;
    return refusals < 0 ? { kind: "delivered", result: {} } : { kind: "retry", why: "not yet", ...flag };
  });
  const dispatcher = world.start();
  world.accept(60);
  await world.clock.advance(MINUTE_MS);
  expect(world.sent).toBe(95);
  await world.stop(dispatcher);
});

test("a suppressed message takes no unit of the day's allowance", async () => {
  const world = aWorld();
  world.suppress("gone@example.com");
  const gone = world.accept(10, warming, "gone@example.com");
  const jobs = world.accept(60);
  const dispatcher = world.start();
  await world.clock.advance(MINUTE_MS);
  expect(world.statuses(gone)).toEqual({ "suppressed after 1": 10 });
  expect(world.statuses(jobs)).toEqual({ "success after 1": 50, "pending after 0": 10 });
  await world.stop(dispatcher);
});

test("an attempt that may have been sent counts as sent", async () => {
  const world = aWorld(() => ({ kind: "retry", why: "the connection broke" }));
  const dispatcher = world.start();
  world.accept(60);
  await world.clock.advance(MINUTE_MS);
  expect(world.sent).toBe(50);
  await world.stop(dispatcher);
});

test("a sender that no longer needs warming up continues within a minute", async () => {
  const world = aWorld();
  const dispatcher = world.start();
  const jobs = world.accept(80);
  await world.clock.advance(5_000);
  expect(world.sent).toBe(50);
  world.tenants.set("warming", { ...warming, emailSender: SENDER });
  await world.clock.advance(MINUTE_MS);
  expect(world.statuses(jobs)).toEqual({ "success after 1": 80 });
  await world.stop(dispatcher);
});

test("a silent queue delays messages but loses no unit of the allowance", async () => {
  const world = aWorld();
  let calls = 0;
  const flaky = new (class extends MemoryQueue {
    override async allow(...call: Parameters<MemoryQueue["allow"]>) {
      const answer = await super.allow(...call);
      calls += 1;
      // Its effect took place, its answer got lost.
      if (calls % 3 === 0) throw new TransportError("no answer");
      return answer;
    }
  })(world.queue.server, world.clock, world.random);
  const dispatcher = world.start(flaky);
  const jobs = world.accept(60);
  await world.clock.advance(110_000);
  expect(world.statuses(jobs)).toEqual({ "success after 1": 50, "pending after 0": 10 });
  await world.stop(dispatcher);
});

test("an allowance that is lowered holds at once, although more units were reserved", async () => {
  const { allowances, clock, allowance } = someAllowances(500);
  const startable = async (perDay: number) => {
    allowances.left({ ...allowance, perDay }, () => {});
    await answered(clock);
    return allowances.left({ ...allowance, perDay }, () => {});
  };
  expect([await startable(500), await startable(500)]).toEqual([0, 10]);
  for (let i = 0; i < 3; i += 1) allowances.take(allowance.tenantQueue);
  expect([await startable(5), await startable(3), await startable(1)]).toEqual([2, 0, 0]);
  expect(await startable(500)).toBe(7);
});

test("the last piece of a day's allowance is no larger than what remains", async () => {
  // Taken in pairs.
  const { allowances, clock, allowance } = someAllowances(75);
  let taken = 0;
  for (let i = 0; i < 200; i += 1) {
    if (allowances.left(allowance, () => {}) > 0) {
      allowances.take(allowance.tenantQueue);
      taken += 1;
    }
    await answered(clock);
  }
  expect(taken).toBe(75);
});
