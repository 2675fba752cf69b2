import { expect, test } from "bun:test";
import { sleep } from "../../../src/domain/clock.ts";
import { TransportError } from "../../../src/domain/errors.ts";
import type { Lease, PullRequest } from "../../../src/domain/jobs/queue.ts";
import { Backlog, PULL_BYTES_MAX } from "../../../src/engine/dispatch/backlog.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { MemoryQueue } from "../../support/memory-redis/memory-queue.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { type Behaviour, REFUSES, RelayWorld, TAKES } from "./relay-world.ts";

const LARGE = "x".repeat(200 * 1024);
const SLOW: Behaviour = { tookMs: 25_000, outcome: { kind: "delivered", result: {} } };

test("a tenant never holds more than its share, and its share is never zero", () => {
  const backlog = new Backlog(new VirtualClock());
  for (let tenant = 0; tenant < 5_000; tenant += 1) {
    const room = backlog.roomFor(0);
    expect(room).toBeGreaterThan(0);
    expect(room).toBeLessThanOrEqual(8 * 1024 * 1024);
    backlog.add(room);
  }
  expect(backlog.bytes).toBeLessThan(engineLimits.backlogBytesMax);
});

test("few pulls run at once, and each waiting owner gets its turn or hears that it ends", async () => {
  const backlog = new Backlog(new VirtualClock());
  const going = new AbortController();
  const places = await Promise.all(Array.from({ length: 8 }, () => backlog.beginPull(going.signal)));
  const ending = new AbortController();
  const turns: boolean[] = [];
  const given = backlog.beginPull(ending.signal).then((place) => turns.push(place !== null));
  const next = backlog.beginPull(going.signal).then((place) => turns.push(place !== null));
  ending.abort();
  await given;
  expect(turns).toEqual([false]);
  places[0]?.end();
  await next;
  expect(turns).toEqual([false, true]);
});

test("owners whose last pull got no answer share few places and queue behind the others", async () => {
  const clock = new VirtualClock();
  const backlog = new Backlog(clock);
  const { signal } = new AbortController();
  const got: string[] = [];
  const begin = (name: string, isSuspect: boolean) =>
    backlog.beginPull(signal, isSuspect).then((place) => {
      got.push(name);
      return place;
    });
  const suspects = ["s1", "s2", "s3"].map((name) => begin(name, true));
  const sound = Array.from({ length: 6 }, (_, i) => begin(`h${i}`, false));
  await clock.advance(0);
  await Promise.all([...suspects.slice(0, 2), ...sound]);
  expect(got).toEqual(["s1", "s2", "h0", "h1", "h2", "h3", "h4", "h5"]);
  const late = begin("h6", false);
  (await suspects[0])?.end();
  await late;
  expect(got.at(-1)).toBe("h6");
  (await late)?.end();
  await suspects[2];
  expect(got.at(-1)).toBe("s3");
});

test("owners on a hanging node never hold up owners on another, not even at first", async () => {
  const world = new RelayWorld(() => TAKES, 64);
  const hung = 21;
  let isHung = true;
  const queue = new (class extends MemoryQueue {
    override async pull(lease: Lease, request: PullRequest) {
      if (!isHung || lease.shard >= hung || request.tenantQueues.length === 0) return super.pull(lease, request);
      await sleep(world.clock, 5_000);
      throw new TransportError("the queue did not answer");
    }
  })(world.state.server, world.clock, world.random);
  const tenants = Array.from({ length: 64 }, (_, i) => world.tenant(`t-${i}`));
  const stuck = tenants.slice(0, hung).flatMap((tenant) => world.accept(tenant, 20));
  const dispatcher = world.start({ queue });
  const others: string[] = [];
  for (let i = 0; i < 100; i += 1) {
    others.push(...tenants.slice(hung).flatMap((tenant) => world.accept(tenant)));
    await world.advance(200);
  }
  await world.advance(5_000);
  // Three times eight of them are noticed, one after the other.
  expect(world.longestWaitMs(others)).toBeLessThan(2_500);
  expect(world.listCalls(stuck)).toHaveLength(0);
  isHung = false;
  await world.advance(30_000);
  expect(world.listCalls(stuck)).toHaveLength(stuck.length);
  await world.stop(dispatcher);
}, 90_000);

test("the backlog counts the bytes of open jobs while they are held, start, end and are dropped", async () => {
  let isUp = false;
  const world = new RelayWorld(() => (isUp ? TAKES : REFUSES));
  const tenants = Array.from({ length: 3 }, (_, i) => world.tenant(`t-${i}`));
  const jobs = tenants.map((tenant) => world.accept(tenant, 100, { payload: LARGE }));
  const dispatcher = world.start();
  await world.advance(30_000);
  expect(dispatcher.backlogBytes).toBeGreaterThan(3 * 4 * 1024 * 1024);
  // One more pull than its share at most.
  expect(dispatcher.backlogBytes).toBeLessThan(3 * (8 * 1024 * 1024 + PULL_BYTES_MAX));
  expect(dispatcher.backlogBytes % LARGE.length).toBe(0);
  isUp = true;
  await world.advance(60_000);
  for (const [i, tenant] of tenants.entries()) {
    expect(world.statuses(tenant, jobs[i] ?? [])).toEqual({ "success after 1": 100 });
  }
  expect(dispatcher.backlogBytes).toBe(0);
  isUp = false;
  for (const tenant of tenants) world.accept(tenant, 20, { payload: LARGE });
  await world.advance(10_000);
  expect(dispatcher.backlogBytes).toBeGreaterThan(0);
  await world.stop(dispatcher);
  expect(dispatcher.backlogBytes).toBe(0);
}, 90_000);

test("the bytes of a job are free once it ends, while its tenant still has a job in flight", async () => {
  const world = new RelayWorld(({ recipient }) => (recipient === "slow@example.com" ? SLOW : TAKES));
  const tenant = world.tenant("busy");
  world.accept(tenant, 1, { recipient: "slow@example.com" });
  const jobs = world.accept(tenant, 100, { payload: LARGE });
  const dispatcher = world.start();
  await world.advance(20_000);
  expect(world.statuses(tenant, jobs)).toEqual({ "success after 1": 100 });
  expect(dispatcher.backlogBytes).toBe("{}".length);
  await world.advance(30_000);
  expect(dispatcher.backlogBytes).toBe(0);
  await world.stop(dispatcher);
}, 90_000);

test("large messages of many tenants pass through small pulls without delaying small ones", async () => {
  const world = new RelayWorld(() => TAKES);
  const requests: PullRequest[] = [];
  const queue = new (class extends MemoryQueue {
    override async pull(lease: Lease, request: PullRequest) {
      requests.push(request);
      return super.pull(lease, request);
    }
  })(world.state.server, world.clock, world.random);
  const large = Array.from({ length: 60 }, (_, i) => world.tenant(`large-${i}`));
  for (const tenant of large) world.accept(tenant, 20, { payload: LARGE });
  const small = world.tenant("small");
  const dispatcher = world.start({ queue });
  const jobs: string[] = [];
  for (let i = 0; i < 50; i += 1) {
    jobs.push(...world.accept(small));
    await world.advance(100);
  }
  await world.advance(60_000);
  expect(world.longestWaitMs(jobs)).toBeLessThan(1_000);
  expect(new Set(world.channel.calls.map(({ job }) => job.jobId)).size).toBe(60 * 20 + 50);
  expect(Math.max(...requests.map(({ bytesMax }) => bytesMax))).toBe(PULL_BYTES_MAX);
  expect(dispatcher.backlogBytes).toBe(0);
  await world.stop(dispatcher);
}, 90_000);
