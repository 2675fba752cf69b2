import { describe, expect, test } from "bun:test";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { QUEUE_SHARE } from "../../../src/domain/tenants/tenant.ts";
import type { Behaviour } from "./relay-world.ts";
import { REFUSES, RelayWorld, TAKES } from "./relay-world.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** How long a delivery of e-mail may last. */
const LONG_MS = 20 * MINUTE_MS;
/** The bound from accept to hand-over, where only the engine's own loops are in between. */
const PROMPTLY_MS = 300;

/** A message of a tenant, again and again, while time passes. Their ids. */
async function trickle(world: RelayWorld, tenantId: string, everyMs: number, forMs: number): Promise<string[]> {
  const tenant = world.tenants.get(tenantId) ?? world.tenant(tenantId);
  const jobs: string[] = [];
  for (let ms = 0; ms < forMs; ms += everyMs) {
    jobs.push(...world.accept(tenant));
    await world.advance(everyMs);
  }
  return jobs;
}

test("sixty tenants whose mail servers take ten seconds per message do not slow another tenant", async () => {
  const slow: Behaviour = { tookMs: 10_000, outcome: { kind: "delivered", result: {} } };
  const world = new RelayWorld((_, relay) => (relay === "platform" ? TAKES : slow));
  for (let i = 0; i < 60; i += 1) world.accept(world.tenant(`slow-${i}`, `smtp://slow-${i}`), 300);
  const dispatcher = world.start();
  await world.advance(5_000);
  const jobs = await trickle(world, "healthy", 100, MINUTE_MS);
  // Nor do they slow a tenant whose relay has no history yet.
  const fresh = await trickle(world, "fresh", 500, 5_000);
  expect(world.longestWaitMs(jobs)).toBeLessThan(PROMPTLY_MS);
  expect(world.longestWaitMs(fresh)).toBeLessThan(PROMPTLY_MS);
  // And they are served as fast as they answer: many at a time, not eight.
  expect(world.channel.inFlight.get("smtp://slow-7")).toBeGreaterThan(8);
  await world.stop(dispatcher);
}, 300_000);

const takes = (tookMs: number): Behaviour => ({ tookMs, outcome: { kind: "delivered", result: {} } });

describe("a shared mail server that takes ten seconds per message, on 48 connections", () => {
  test.each<[what: string, behave: (job: QueuedJob) => Behaviour]>([
    ["each", () => takes(10_000)],
    ["of some", ({ jobId }) => (jobId.charCodeAt(35) % 2 === 0 ? takes(10_000) : TAKES)],
  ])(
    "breaks off no message and delays no quiet tenant while twelve others are busy: %s",
    async (_, behave) => {
      const world = new RelayWorld((job) => (job.tenantId === "quiet" ? takes(10_000) : behave(job)), 1, 48);
      const busy = Array.from({ length: 12 }, (_, i) => world.tenant(`busy-${i}`));
      const noise = busy.map((tenant) => world.accept(tenant, 1_000));
      const dispatcher = world.start();
      await world.advance(20_000);
      const jobs = await trickle(world, "quiet", 12_000, 2 * MINUTE_MS);
      expect(world.channel.cutOff).toBe(0);
      // It has none in flight each time.
      expect(world.longestWaitMs(jobs)).toBeLessThan(PROMPTLY_MS);
      expect(dispatcher.away()).toEqual([]);
      // The busy tenants still get their share: three quarters of the connections are theirs.
      const taken = noise.map((ids) => world.listCalls(ids).length);
      expect(Math.min(...taken)).toBeGreaterThan(30);
      expect(world.channel.inFlight.get("platform")).toBeGreaterThanOrEqual(30);
      await world.stop(dispatcher);
    },
    300_000,
  );
});

test("a thousand tenants whose mail servers never answer slow neither another tenant nor a newcomer", async () => {
  const world = new RelayWorld((_, relay) => (relay.startsWith("smtp://hangs") ? "never answers" : TAKES));
  world.channel.deliveryMsMax = LONG_MS;
  for (let i = 0; i < 1_000; i += 1) world.accept(world.tenant(`hangs-${i}`, `smtp://hangs-${i}`), 10);
  const dispatcher = world.start();
  const healthy: string[] = [];
  const newcomers: string[] = [];
  await world.advance(1_000);
  for (let i = 0; i < 100; i += 1) newcomers.push(...world.accept(world.tenant(`first-${i}`, `smtp://first-${i}`)));
  for (let i = 0; i < 20; i += 1) {
    newcomers.push(...world.accept(world.tenant(`new-${i}`, `smtp://new-${i}`)));
    healthy.push(...(await trickle(world, "healthy", 1_000, 10_000)));
  }
  expect(world.longestWaitMs(healthy)).toBeLessThan(PROMPTLY_MS);
  expect(world.longestWaitMs(newcomers)).toBeLessThan(PROMPTLY_MS);
  await world.stop(dispatcher);
}, 300_000);

test("prompt mail servers that begin to hang free their slots for others within seconds", async () => {
  let hang = false;
  const world = new RelayWorld((_, relay) => (hang && relay !== "platform" ? "never answers" : TAKES));
  world.channel.deliveryMsMax = LONG_MS;
  const dispatcher = world.start();
  // More than there are slots.
  const tenants = Array.from({ length: 600 }, (_, i) => world.tenant(`t-${i}`, `smtp://t-${i}`));
  for (const tenant of tenants) world.accept(tenant);
  await world.advance(5_000);
  const before = await trickle(world, "healthy", 100, 2_000);
  hang = true;
  for (const tenant of tenants) world.accept(tenant, 2);
  const during = await trickle(world, "healthy", 100, 30_000);
  expect(world.longestWaitMs(before)).toBeLessThan(PROMPTLY_MS);
  // One sweep moves long deliveries out of the way.
  expect(world.longestWaitMs(during)).toBeLessThan(2_500);
  expect(world.longestWaitMs(during.slice(50))).toBeLessThan(PROMPTLY_MS);
  await world.stop(dispatcher);
}, 300_000);

test("a mail server that refuses for forty minutes costs no attempt, and everything is sent once it is back", async () => {
  let isUp = false;
  const world = new RelayWorld(() => (isUp ? TAKES : REFUSES));
  const tenant = world.tenant("acme");
  const jobs = world.accept(tenant, 40);
  const dispatcher = world.start();
  await world.advance(40 * MINUTE_MS);
  jobs.push(...world.accept(tenant, 5));
  await world.advance(2_000);
  expect(world.statuses(tenant, jobs)).toEqual({ "running after 0": 45 });
  expect(dispatcher.away()).toEqual([
    {
      channel: "email",
      relay: "acme to platform",
      isOwn: false,
      forMs: expect.any(Number),
      state: "open",
      why: "the mail server refuses connections",
      waitingJobs: 45,
    },
  ]);
  expect([world.gauges.get("relay_open email acme to platform"), world.gauges.get("jobs_held email")]).toEqual([1, 45]);
  // A try now and then, not one per job.
  expect(world.channel.calls.length).toBeLessThan(150);
  isUp = true;
  await world.advance(31_000);
  expect(world.statuses(tenant, jobs)).toEqual({ "success after 1": 45 });
  expect(dispatcher.away()).toEqual([]);
  expect([world.gauges.get("relay_open email acme to platform"), world.gauges.get("jobs_held email")]).toEqual([0, 0]);
  expect(world.logs.map(({ message }) => message)).toEqual(["a relay is away, its jobs wait", "a relay is back"]);
  await world.stop(dispatcher);
}, 300_000);

test("one delivery at a time probes a relay that is away, less and less often", async () => {
  const world = new RelayWorld(() => REFUSES);
  for (let i = 0; i < 50; i += 1) world.accept(world.tenant(`t-${i}`), 2);
  const dispatcher = world.start();
  await world.advance(2_000);
  world.channel.calls.length = 0;
  await world.advance(10 * MINUTE_MS);
  const starts = world.channel.calls.map(({ atMs }) => atMs);
  const gaps = starts.slice(1).map((atMs, i) => atMs - (starts[i] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThan(1_000);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(30_100);
  expect(starts.length).toBeGreaterThan(18);
  expect(starts.length).toBeLessThan(40);
  await world.stop(dispatcher);
}, 300_000);

test("a message that silences its relay, however often, holds up no other", async () => {
  const world = new RelayWorld((job) =>
    job.recipient === "bomb@down.test"
      ? { tookMs: 5_000, outcome: { kind: "retry", why: "no answer behind the message", isSilence: true } }
      : TAKES,
  );
  const dispatcher = world.start();
  world.tenant("acme");
  const bombs = world.accept(world.tenant("bomber"), 5, { recipient: "bomb@down.test" });
  // No other tenant sends meanwhile.
  await world.advance(2 * MINUTE_MS);
  const jobs = await trickle(world, "acme", 1_000, MINUTE_MS);
  expect(world.longestWaitMs(jobs)).toBeLessThan(PROMPTLY_MS);
  expect(dispatcher.away()).toEqual([]);
  // Its tries are attempts.
  expect(world.job(world.tenant("bomber"), bombs[0] ?? "")?.attempts).toBeGreaterThan(3);
  await world.stop(dispatcher);
}, 300_000);

test("a relay that falls silent on everyone's messages is away, and one answer brings it back", async () => {
  let isUp = false;
  const silent: Behaviour = { tookMs: 30_000, outcome: { kind: "retry", why: "no answer", isSilence: true } };
  const world = new RelayWorld(() => (isUp ? TAKES : silent));
  const tenants = Array.from({ length: 30 }, (_, i) => world.tenant(`t-${i}`));
  for (const [i, tenant] of tenants.entries()) world.accept(tenant, 4, { recipient: `ann@d${i}.test` });
  const dispatcher = world.start();
  await world.advance(2 * MINUTE_MS);
  expect(dispatcher.away()).toHaveLength(1);
  const before = world.channel.calls.length;
  await world.advance(10 * MINUTE_MS);
  // One at a time.
  expect(world.channel.calls.length - before).toBeLessThan(30);
  isUp = true;
  await world.advance(3 * MINUTE_MS);
  expect(dispatcher.away()).toEqual([]);
  await world.stop(dispatcher);
}, 300_000);

test("one slow delivery does not hold up the rest of its tenant's jobs", async () => {
  const slow = { tookMs: 28_000, outcome: { kind: "delivered", result: {} } } as const;
  const world = new RelayWorld((job) => (job.recipient === "slow@example.com" ? slow : TAKES));
  const tenant = world.tenant("acme");
  const dispatcher = world.start();
  await trickle(world, "acme", 10, 1_000);
  world.accept(tenant, 1, { recipient: "slow@example.com" });
  const jobs = world.accept(tenant, 1_000);
  await world.advance(20_000);
  expect(world.statuses(tenant, jobs)).toEqual({ "success after 1": 1_000 });
  await world.advance(10_000);
  await world.stop(dispatcher);
}, 300_000);

test("a message that a relay refuses as if it were away, while it answers all others, is judged in the end", async () => {
  const world = new RelayWorld((job) => (job.recipient === "odd@example.com" ? REFUSES : TAKES));
  const tenant = world.tenant("acme");
  const dispatcher = world.start();
  const odd = world.accept(tenant, 1, { recipient: "odd@example.com" });
  const jobs = await trickle(world, "acme", 500, 5 * MINUTE_MS);
  expect(world.longestWaitMs(jobs)).toBeLessThan(PROMPTLY_MS);
  expect(world.job(tenant, odd[0] ?? "")?.attempts).toBeGreaterThan(0);
  // It waits between its tries.
  expect(world.listCalls(odd).length).toBeLessThan(20);
  await world.stop(dispatcher);
}, 300_000);

test("a tenant's own relay being away affects nobody else", async () => {
  const world = new RelayWorld((_, relay) => (relay === "platform" ? TAKES : REFUSES));
  const own = world.tenant("own", "smtp://gone");
  const held = world.accept(own, 100);
  const dispatcher = world.start();
  const jobs = await trickle(world, "healthy", 200, 20_000);
  expect(world.longestWaitMs(jobs)).toBeLessThan(PROMPTLY_MS);
  expect(world.statuses(own, held)["success after 1"]).toBeUndefined();
  expect(dispatcher.away()).toMatchObject([{ isOwn: true }]);
  expect(world.gauges.get("relay_open email own")).toBe(1);
  await world.stop(dispatcher);
}, 300_000);

test("a job fails once its relay has been away for as long as the plan allows", async () => {
  const world = new RelayWorld(() => REFUSES);
  const plan = {
    name: "pro",
    requestsPerMinute: 1_000_000,
    deliveriesPerSecond: null,
    ...QUEUE_SHARE,
    holdMs: 2 * HOUR_MS,
  };
  const tenant = world.tenant("acme", null, { plan });
  const old = world.accept(tenant, 300);
  const dispatcher = world.start();
  await world.advance(HOUR_MS);
  const young = world.accept(tenant, 3);
  await world.advance(HOUR_MS - MINUTE_MS);
  expect(world.statuses(tenant, old)["failed after 1"]).toBeUndefined();
  await world.advance(2 * MINUTE_MS);
  expect(world.statuses(tenant, old)).toEqual({ "failed after 1": 300 });
  expect(world.job(tenant, old[0] ?? "")?.result).toEqual({
    error: "the mail server refuses connections: gave up after 2 hours",
  });
  expect(world.statuses(tenant, young)["failed after 1"]).toBeUndefined();
  expect(dispatcher.backlogBytes).toBeGreaterThan(0);
  await world.advance(HOUR_MS);
  expect(world.statuses(tenant, young)).toEqual({ "failed after 1": 3 });
  expect(dispatcher.backlogBytes).toBe(0);
  await world.stop(dispatcher);
}, 300_000);

test("an outage of a few minutes fails no job, however old it is", async () => {
  let isUp = false;
  const world = new RelayWorld(() => (isUp ? TAKES : REFUSES));
  const plan = {
    name: "pro",
    requestsPerMinute: 1_000_000,
    deliveriesPerSecond: null,
    ...QUEUE_SHARE,
    holdMs: 2 * HOUR_MS,
  };
  const tenant = world.tenant("acme", null, { plan });
  const old = world.accept(tenant, 3);
  await world.advance(5 * HOUR_MS);
  const dispatcher = world.start();
  await world.advance(10 * MINUTE_MS);
  isUp = true;
  await world.advance(MINUTE_MS);
  expect(world.statuses(tenant, old)).toEqual({ "success after 1": 3 });
  await world.stop(dispatcher);
}, 300_000);

test("a tenant that switches relays while its own is away is served within seconds", async () => {
  const world = new RelayWorld((_, relay) => (relay === "smtp://gone" ? REFUSES : TAKES));
  const jobs = world.accept(world.tenant("acme", "smtp://gone"), 20);
  const dispatcher = world.start();
  await world.advance(5 * MINUTE_MS);
  const tenant = world.tenant("acme", "smtp://new", { shard: 0 });
  await world.advance(6_000);
  expect(world.statuses(tenant, jobs)).toEqual({ "success after 1": 20 });
  await world.stop(dispatcher);
}, 300_000);

test("jobs held when their process stops go on with the next one and lose no attempt", async () => {
  let isUp = false;
  const world = new RelayWorld(() => (isUp ? TAKES : REFUSES));
  const tenant = world.tenant("acme");
  const jobs = world.accept(tenant, 30);
  const first = world.start();
  await world.advance(MINUTE_MS);
  const second = world.start();
  await world.stop(first);
  await world.advance(MINUTE_MS);
  isUp = true;
  await world.advance(MINUTE_MS);
  expect(world.statuses(tenant, jobs)).toEqual({ "success after 1": 30 });
  await world.stop(second);
}, 300_000);

test("a relay that is away and has no jobs here any more is dropped from the list", async () => {
  const world = new RelayWorld(() => REFUSES);
  world.accept(world.tenant("acme"), 5);
  const first = world.start();
  await world.advance(MINUTE_MS);
  expect(first.away()).toHaveLength(1);
  // Another process takes the only shard away from it.
  const second = world.start();
  await world.stop(first);
  await world.advance(6 * MINUTE_MS);
  expect(first.away()).toEqual([]);
  expect(second.away()).toHaveLength(1);
  await world.stop(second);
}, 300_000);
