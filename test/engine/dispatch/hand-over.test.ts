import { expect, test } from "bun:test";
import { TransportError, UnavailableError } from "../../../src/domain/errors.ts";
import { limits } from "../../../src/domain/limits.ts";
import type { MemoryQueue } from "../../support/memory-redis/memory-queue.ts";
import { type Behaviour, RelayWorld, TAKES } from "./relay-world.ts";

const SLOW: Behaviour = { tookMs: 28_000, outcome: { kind: "delivered", result: {} } };
/** The bound from accept to hand-over, where only the engine's own loops are in between. */
const PROMPTLY_MS = 300;

/** A way to the queue that can be cut: then each call fails after a while. */
function cuttable(world: RelayWorld) {
  const line = { cut: false };
  const target = world.queue();
  const queue = new Proxy(target, {
    get: (_, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function" || String(name).startsWith("on")) return value;
      return async (...args: unknown[]) => {
        if (!line.cut) return Reflect.apply(value, target, args);
        await new Promise<void>((resolve) => world.clock.setTimer(500, resolve));
        throw new TransportError("cut");
      };
    },
  });
  return { queue, line };
}

test("a shard with slow deliveries is handed over at once, and each outcome is written by the process that delivers", async () => {
  const world = new RelayWorld((job) => (job.recipient === "slow@example.com" ? SLOW : TAKES));
  const tenant = world.tenant("acme");
  const neighbour = world.tenant("neighbour");
  const slow = world.accept(tenant, 5, { recipient: "slow@example.com" });
  const first = world.start();
  await world.advance(2_000);
  const second = world.start();
  await world.advance(2_000);
  const stopping = first.stop();
  const jobs = world.accept(neighbour, 10);
  await world.advance(1_000);
  // Long before the slow ones end.
  expect(world.statuses(neighbour, jobs)).toEqual({ "success after 1": 10 });
  expect(world.longestWaitMs(jobs)).toBeLessThan(PROMPTLY_MS);
  await world.advance(limits.drainMs);
  await stopping;
  await world.advance(60_000);
  // The drain broke them off, which is an attempt; the next one took them up again.
  expect(world.statuses(tenant, slow)).toEqual({ "success after 2": 5 });
  await world.stop(second);
});

test("a process with nothing in flight stops at once", async () => {
  const world = new RelayWorld(() => TAKES);
  const jobs = world.accept(world.tenant("acme"), 3);
  const process = world.start();
  await world.advance(2_100);
  expect(world.listCalls(jobs)).toHaveLength(3);
  let isOver = false;
  void process.stop().then(() => {
    isOver = true;
  });
  // Before its next scheduled check for work.
  await world.advance(50);
  await world.advance(0);
  expect(isOver).toBe(true);
});

test("a joining process gets its share at once, and deliveries in flight elsewhere are sent once", async () => {
  const world = new RelayWorld((job) => (job.recipient === "slow@example.com" ? SLOW : TAKES), 4);
  const tenants = Array.from({ length: 8 }, (_, i) => world.tenant(`t-${i}`));
  const first = world.start();
  await world.advance(2_000);
  const slow = tenants.map((tenant) => ({ tenant, jobs: world.accept(tenant, 4, { recipient: "slow@example.com" }) }));
  await world.advance(2_000);
  const second = world.start();
  const jobs: string[] = [];
  for (let i = 0; i < 100; i += 1) {
    jobs.push(...tenants.flatMap((tenant) => world.accept(tenant)));
    await world.advance(50);
  }
  await world.advance(PROMPTLY_MS);
  expect(world.longestWaitMs(jobs)).toBeLessThan(PROMPTLY_MS);
  await world.advance(60_000);
  for (const { tenant, jobs: ids } of slow) expect(world.statuses(tenant, ids)).toEqual({ "success after 1": 4 });
  expect(world.listCalls(slow.flatMap(({ jobs: ids }) => ids))).toHaveLength(32);
  await world.stop(first, second);
});

test("a relay that takes nine minutes gets each message once, though its shard has other owners meanwhile", async () => {
  const world = new RelayWorld(() => ({ tookMs: 9 * 60_000, outcome: { kind: "delivered", result: {} } }));
  world.channel.deliveryMsMax = 20 * 60_000;
  const tenant = world.tenant("acme");
  const jobs = world.accept(tenant, 4);
  const first = world.start();
  await world.advance(2_000);
  const second = world.start();
  const third = world.start();
  await world.advance(10 * 60_000);
  expect(world.statuses(tenant, jobs)).toEqual({ "success after 1": 4 });
  expect(world.listCalls(jobs)).toHaveLength(4);
  expect(world.channel.cutOff).toBe(0);
  await world.stop(first, second, third);
});

test("the next owner retries a lent delivery that failed for now; one that failed for good has ended", async () => {
  const end = (outcome: Behaviour & object) => ({ ...outcome, tookMs: 3_000 });
  let tries = 0;
  const world = new RelayWorld((job) => {
    if (job.recipient === "bad@example.com") return end({ tookMs: 0, outcome: { kind: "failed", error: "refused" } });
    tries += 1;
    return tries === 1 ? end({ tookMs: 0, outcome: { kind: "retry", why: "busy" } }) : TAKES;
  });
  const tenant = world.tenant("acme");
  const bad = world.accept(tenant, 1, { recipient: "bad@example.com" });
  const busy = world.accept(tenant);
  const first = world.start();
  await world.advance(1_000);
  const second = world.start();
  const stopping = first.stop();
  await world.advance(limits.drainMs);
  await stopping;
  expect(world.statuses(tenant, bad)).toEqual({ "failed after 1": 1 });
  expect(world.statuses(tenant, busy)).toEqual({ "success after 2": 1 });
  expect(world.listCalls(bad)).toHaveLength(1);
  await world.stop(second);
});

test("a silence of the queue longer than the lease sends nothing twice and starts nothing", async () => {
  const world = new RelayWorld(
    (job) => (job.recipient === "slow@example.com" ? { ...SLOW, tookMs: 25_000 } : TAKES),
    2,
  );
  const tenant = world.tenant("acme", "smtp://acme");
  world.tenant("other");
  const lines = [0, 1].map(() => cuttable(world));
  const processes = lines.map(({ queue }) => world.start({ queue }));
  await world.advance(3_000);
  const jobs = world.accept(tenant, 20, { recipient: "slow@example.com" });
  await world.advance(1_000);
  expect(world.listCalls(jobs)).toHaveLength(8);
  for (const { line } of lines) line.cut = true;
  // The rest may start only while the lease is surely held.
  await world.advance(12_000);
  const startedBy = world.listCalls(jobs).length;
  await world.advance(20_000);
  expect(world.listCalls(jobs)).toHaveLength(startedBy);
  for (const { line } of lines) line.cut = false;
  await world.advance(90_000);
  expect(world.statuses(tenant, jobs)).toEqual({ "success after 1": 20 });
  expect(world.listCalls(jobs)).toHaveLength(20);
  await world.stop(...processes);
});

test("another process delivers a dead owner's jobs within the promised time", async () => {
  const world = new RelayWorld(() => TAKES, 4);
  const tenants = Array.from({ length: 4 }, (_, i) => world.tenant(`t-${i}`));
  const { queue, line } = cuttable(world);
  world.start({ queue });
  const heir = world.start();
  await world.advance(3_000);
  line.cut = true;
  const jobs = tenants.flatMap((tenant) => world.accept(tenant));
  await world.advance(limits.takeoverMsMax);
  expect(world.longestWaitMs(jobs)).toBeLessThan(limits.takeoverMsMax);
  await world.stop(heir);
});

/** A way to the queue, and the durations for which jobs are lent over it. */
function withLoans(world: RelayWorld) {
  const target = world.queue();
  const loansMs: number[] = [];
  const queue = new Proxy(target, {
    get: (_, name) => {
      const value: unknown = Reflect.get(target, name);
      if (name !== "settle") return typeof value === "function" ? value.bind(target) : value;
      return (...[lease, settlements, ...more]: Parameters<MemoryQueue["settle"]>) => {
        for (const each of settlements) if (each.kind === "lend") loansMs.push(each.forMs);
        return target.settle(lease, settlements, ...more);
      };
    },
  });
  return { queue, loansMs };
}

test("a stopping process lends its jobs for no longer than its drain lasts", async () => {
  const world = new RelayWorld(() => SLOW);
  const jobs = world.accept(world.tenant("acme"));
  const { queue, loansMs } = withLoans(world);
  const dispatcher = world.start({ queue });
  await world.advance(2_000);
  expect(world.listCalls(jobs)).toHaveLength(1);
  await world.stop(dispatcher);
  expect(loansMs).toHaveLength(1);
  expect(loansMs[0]).toBeLessThan(limits.deliveryTimeoutMs);
});

test("a suppressed job that cannot give back yet is lent, and nothing waits for it after the loan", async () => {
  const world = new RelayWorld(() => TAKES);
  const tenant = world.tenant("acme");
  world.suppress(tenant, "ann@example.com", "bounced");
  const givenBack: string[] = [];
  let isAway = true;
  world.channel.giveBack = async ({ jobId }) => {
    if (isAway) throw new UnavailableError("the registry is away");
    givenBack.push(jobId);
  };
  const jobs = world.accept(tenant);
  const { queue, loansMs } = withLoans(world);
  const first = world.start({ queue });
  await world.advance(2_000);
  await world.stop(first);
  expect(loansMs).toHaveLength(1);
  expect(world.clock.timersSet).toBe(0);
  isAway = false;
  const second = world.start();
  await world.advance(15_000);
  expect(world.statuses(tenant, jobs)).toEqual({ "suppressed after 1": 1 });
  expect(givenBack).toEqual(jobs);
  expect(world.listCalls(jobs)).toEqual([]);
  await world.stop(second);
});
