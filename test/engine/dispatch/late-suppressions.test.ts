import { describe, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { sleep } from "../../../src/domain/clock.ts";
import { TransportError } from "../../../src/domain/errors.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import { isFinal } from "../../../src/domain/jobs/job.ts";
import type { Tenant } from "../../../src/domain/tenants/tenant.ts";
import { Dispatcher } from "../../../src/engine/dispatch/dispatcher.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { eventually } from "../../support/eventually.ts";
import type { MemoryQueue } from "../../support/memory-redis/memory-queue.ts";
import { NO_HISTORIES } from "../../support/no-histories.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { RecordingChannel } from "../../support/recording-channel.ts";
import { startRedis } from "../../support/redis.ts";
import { aTenant, createDirectory } from "../../support/tenants.ts";
import { record } from "../queue/queue-world.ts";
import { REFUSES, RelayWorld, TAKES } from "./relay-world.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const ANN = { recipient: "ann@example.com" };
const BOB = { recipient: "bob@example.com" };

/** A way to the queue that counts look-ups of jobs, and can make them fail. */
function withLooks(world: RelayWorld) {
  const target = world.queue();
  const looks = { count: 0, fail: false, onLook: () => {} };
  const queue = new Proxy(target, {
    get: (_, name) => {
      const value: unknown = Reflect.get(target, name);
      if (name !== "lookAgain") return typeof value === "function" ? value.bind(target) : value;
      return async (...[lease, job]: Parameters<MemoryQueue["lookAgain"]>) => {
        looks.count += 1;
        looks.onLook();
        if (looks.fail) throw new TransportError("no answer");
        return target.lookAgain(lease, job);
      };
    },
  });
  return { queue, looks };
}

describe("a recipient who is suppressed while the message waits for its relay", () => {
  async function waiting({ forMs = 5 * MINUTE_MS, annsJobs = 5 } = {}) {
    let isBack = false;
    const world = new RelayWorld(() => (isBack ? TAKES : REFUSES));
    const { queue, looks } = withLooks(world);
    const tenant = world.tenant("acme", "smtp://acme", { plan: { ...world.tenant("plan").plan, holdMs: 2 * HOUR_MS } });
    const [ann, bob] = [world.accept(tenant, annsJobs, ANN), world.accept(tenant, 5, BOB)];
    const dispatcher = world.start({ queue });
    await world.advance(forMs);
    world.suppress(tenant, ANN.recipient, "unsubscribed");
    const callsBefore = world.listCalls(ann).length;
    const back = () => {
      isBack = true;
    };
    return { world, tenant, looks, dispatcher, ann, bob, callsBefore, back };
  }

  test("gets nothing when the relay is back, and accepting it is taken back; others get theirs", async () => {
    const { world, tenant, dispatcher, ann, bob, callsBefore, back } = await waiting();
    const givenBack: string[] = [];
    world.channel.giveBack = async ({ jobId }) => void givenBack.push(jobId);
    back();
    await world.advance(MINUTE_MS);
    expect(world.statuses(tenant, ann)).toEqual({ "suppressed after 1": 5 });
    expect(world.statuses(tenant, bob)).toEqual({ "success after 1": 5 });
    expect(world.listCalls(ann)).toHaveLength(callsBefore);
    const result = { reason: "unsubscribed" };
    expect(ann.map((jobId) => world.job(tenant, jobId))).toEqual(
      ann.map(() =>
        expect.objectContaining({ result, events: [expect.objectContaining({ type: "suppressed", result })] }),
      ),
    );
    expect(givenBack.toSorted()).toEqual(ann.toSorted());
    await world.stop(dispatcher);
  });

  test("gets nothing while the queue does not say, nor does anybody else, and no attempt is counted", async () => {
    const { world, tenant, looks, dispatcher, ann, bob, callsBefore, back } = await waiting();
    const callsOfBob = world.listCalls(bob).length;
    looks.fail = true;
    back();
    await world.advance(2 * MINUTE_MS);
    expect(world.listCalls(ann)).toHaveLength(callsBefore);
    expect(world.listCalls(bob)).toHaveLength(callsOfBob);
    looks.fail = false;
    await world.advance(2 * MINUTE_MS);
    expect(world.statuses(tenant, ann)).toEqual({ "suppressed after 1": 5 });
    expect(world.statuses(tenant, bob)).toEqual({ "success after 1": 5 });
    await world.stop(dispatcher);
  });

  test("is suppressed also where the message was held for too long", async () => {
    const { world, tenant, dispatcher, ann, bob } = await waiting({ forMs: 2 * HOUR_MS - 5_000 });
    await world.advance(MINUTE_MS);
    expect(world.statuses(tenant, ann)).toEqual({ "suppressed after 1": 5 });
    expect(world.statuses(tenant, bob)).toEqual({ "failed after 1": 5 });
    await world.stop(dispatcher);
  }, 30_000);

  test("does not keep others' messages from finding out that the relay is back", async () => {
    const { world, tenant, dispatcher, ann, bob, back } = await waiting({ annsJobs: 60 });
    back();
    await world.advance(MINUTE_MS);
    expect(world.statuses(tenant, ann)).toEqual({ "suppressed after 1": 60 });
    expect(world.statuses(tenant, bob)).toEqual({ "success after 1": 5 });
    await world.stop(dispatcher);
  });
});

test.each([
  ["and is known to be", false],
  ["and has to be loaded", true],
])(
  "a tenant that is paused while a job is looked up again, %s, is sent nothing, and loses no attempt",
  async (_, isLoadedAnew) => {
    const world = new RelayWorld(() => TAKES);
    const { queue, looks } = withLooks(world);
    const plan = { ...world.tenant("plan").plan, deliveriesPerSecond: 0.5 };
    const tenant = world.tenant("acme", null, { plan });
    const jobs = world.accept(tenant, 2);
    const steer = (paused: readonly string[]) => {
      const steering = {
        paused: new Set(paused),
        held: new Set<string>(),
        purgedBefore: new Map(),
        resumedAt: new Map(),
      };
      const steered: Tenant = { ...tenant, steering };
      world.tenants.set("acme", steered);
      const { lookUp } = world;
      if (!isLoadedAnew) return;
      world.lookUp = async () => {
        world.lookUp = lookUp;
        return steered;
      };
    };
    looks.onLook = () => steer(["email"]);
    const dispatcher = world.start({ queue });
    await world.advance(20_000);
    expect(world.statuses(tenant, jobs)).toEqual({ "success after 1": 1, "running after 0": 1 });
    looks.onLook = () => {};
    steer([]);
    await world.advance(20_000);
    expect(world.statuses(tenant, jobs)).toEqual({ "success after 1": 2 });
    await world.stop(dispatcher);
  },
);

test.each([
  ["the queue does not say whether they may be sent", (looks: { fail: boolean }) => (looks.fail = true)],
  [
    "their tenant is changed all the while",
    (looks: { onLook: () => void }, change: () => void) => (looks.onLook = change),
  ],
])("messages are sent in the order of their acceptance, though %s", async (_, trouble) => {
  const world = new RelayWorld(() => TAKES);
  const { queue, looks } = withLooks(world);
  const plan = { ...world.tenant("plan").plan, deliveriesPerSecond: 20 };
  const tenant = world.tenant("acme", null, { plan });
  const early = world.accept(tenant, 400);
  const dispatcher = world.start({ queue });
  await world.advance(3_000);
  const { lookUp } = world;
  const looksBefore = looks.count;
  trouble(looks, () => {
    world.lookUp = async () => {
      await sleep(world.clock, 300);
      world.lookUp = lookUp;
      return tenant;
    };
  });
  await world.advance(5_000);
  // One for each of its slots in a second, at most.
  expect(looks.count - looksBefore).toBeLessThan(5 * 20 + 64);
  const late = world.accept(tenant, 20);
  looks.fail = false;
  looks.onLook = () => {};
  await world.advance(60_000);
  expect(world.channel.calls.map(({ job }) => job.jobId)).toEqual([...early, ...late]);
  await world.stop(dispatcher);
});

test("jobs that start within a second of their pull are not looked up again, and those that wait longer are", async () => {
  const world = new RelayWorld(() => TAKES);
  const { queue, looks } = withLooks(world);
  const plan = { ...world.tenant("plan").plan, deliveriesPerSecond: 5 };
  const [quick, paced] = [world.tenant("quick"), world.tenant("paced", null, { plan })];
  const dispatcher = world.start({ queue });
  await world.advance(2_000);
  const jobs = world.accept(quick, 200);
  await world.advance(2_000);
  expect(world.statuses(quick, jobs)).toEqual({ "success after 1": 200 });
  expect(looks.count).toBe(0);
  const some = world.accept(paced, 20);
  await world.advance(10_000);
  expect(world.statuses(paced, some)).toEqual({ "success after 1": 20 });
  // All but those of the first second.
  expect(looks.count).toBeGreaterThan(10);
  expect(looks.count).toBeLessThan(17);
  await world.stop(dispatcher);
});

test("a recipient who is erased while the message waits in a process gets nothing, and the history no address", async () => {
  const redis = await startRedis();
  const common = { clock: systemClock, random: systemRandom, telemetry: new QuietTelemetry() };
  const queue = new RedisQueue({ channels: CHANNELS, address: { kind: "socket", path: redis.path }, ...common });
  await queue.start();
  const tenant = aTenant({ shard: 0 });
  let waitMs = 1_200;
  const channel = Object.assign(new RecordingChannel(() => ({ kind: "delivered", result: {} })), {
    paceMs: () => waitMs,
  });
  const dispatcher = new Dispatcher({
    queue,
    directory: createDirectory([tenant]),
    channels: [channel],
    histories: NO_HISTORIES,
    suppressions: { fill: async () => true },
    owner: "p1",
    shards: 1,
    ...common,
  });
  dispatcher.start();
  const jobId = new JobIds(systemClock, systemRandom).next();
  const tags = [{ name: "user", value: "ann" }];
  await queue.accept(tenant, null, { jobId, channel: "email", ...ANN, payload: "{}", idempotency: null, tags });
  await eventually("a process has it", async () => (await queue.job(tenant, jobId))?.status === "running");
  expect(await queue.eraseJobs(tenant, ANN.recipient)).toMatchObject({ unfinished: 1 });
  waitMs = 0;
  const job = await eventually("it ends", async () => {
    const now = await queue.job(tenant, jobId);
    return now !== null && isFinal(now.status) ? now : null;
  });
  expect(job).toMatchObject({ status: "suppressed", result: { reason: "erased" } });
  expect(channel.delivered).toEqual([]);
  const lease = await queue.acquire(0, "recorder", "test", null);
  const rows = lease === null ? [] : ((await record(lease, null, queue))?.rows ?? []);
  expect(rows.map(({ finished }) => [finished?.status, finished?.recipient, finished?.tags])).toEqual([
    ["suppressed", undefined, undefined],
  ]);
  await dispatcher.stop();
  await queue.stop();
  await redis.stop();
}, 90_000);
