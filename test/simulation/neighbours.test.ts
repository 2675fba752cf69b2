import { describe, expect, test } from "bun:test";
import { QUEUE_SHARE, type Tenant } from "../../src/domain/tenants/tenant.ts";
import { aTenant } from "../support/tenants.ts";
import type { RunOptions } from "./run-options.ts";
import { SLOT_STORIES } from "./slot-stories.ts";
import { Story } from "./story.ts";
import { CALM } from "./weather.ts";

/*
 * Stories of troublesome tenants, relays and processes: the others do not notice them, and no outage costs a message.
 */

const ONCE = { status: "success", handOvers: 1, eventStore: ["sent"] } as const;
const FAILED = { status: "failed", handOvers: 0, eventStore: ["failed"] } as const;
const MINUTE_MS = 60_000;
const LARGE = JSON.stringify({ html: "x".repeat(240_000) });

function tenantsLike(names: readonly string[], overrides: Partial<Tenant> = {}): readonly Tenant[] {
  return names.map((tenantId) => aTenant({ tenantId, ...overrides }));
}

/** So many tenants with a relay of their own each, and one with the platform's. */
function withNeighbours(count: number): Pick<RunOptions, "tenants" | "relays"> & { readonly names: readonly string[] } {
  const names = Array.from({ length: count }, (_, i) => `neighbour-${i}`);
  return {
    names,
    tenants: tenantsLike([...names, "quiet"]),
    relays: new Map(names.map((name) => [name, `relay-of-${name}`])),
  };
}

describe("a tenant does not feel", () => {
  for (const state of ["hangs", "silent", "slow", "away"] as const) {
    test(`that the relays of sixty others are in trouble (${state})`, () => {
      const { names, ...options } = withNeighbours(60);
      const story = new Story({ ...options, slots: 16 });
      for (const name of names) story.trouble(name, state, 10 * MINUTE_MS);
      for (const name of names) story.acceptMany(10, name);
      story.advance(30_000);
      for (let i = 0; i < 5; i += 1) {
        expect(story.measureWait(story.accept("quiet", `reader${i}@example.com`))).toBeLessThan(500);
        story.advance(5_000);
      }
      story.world.relays.heal();
      story.end();
    }, 90_000);
  }

  test("the large messages of fourteen others on a slow wire", () => {
    const names = Array.from({ length: 14 }, (_, i) => `large-${i}`);
    const tenants = tenantsLike([...names, "quiet"]);
    const story = new Story({ tenants, weather: { ...CALM, report: 0, isCalm: false, bytesPerMs: 4_000 } });
    const jobs = names.flatMap((name) =>
      Array.from({ length: 8 }, (_, i) => story.accept(name, `reader${i}@example.com`, LARGE)),
    );
    story.advance(1_000);
    expect(story.measureWait(story.accept("quiet"))).toBeLessThan(1_500);
    // 27 MB at 4 MB a second.
    story.until("all are delivered", () => jobs.every((jobId) => story.outcomeFor(jobId).handOvers === 1), 12_000);
    story.end();
    for (const jobId of jobs) expect(story.outcomeFor(jobId)).toEqual(ONCE);
  }, 90_000);

  test("that the tenants of three hundred others are being loaded", () => {
    const { names, ...options } = withNeighbours(300);
    const weather = { ...CALM, report: 0, isCalm: false, tenantLoadMs: 50 };
    const story = new Story({ ...options, weather });
    const term = story.findTerm();
    story.measureWait(story.accept("quiet"));
    for (const name of names) story.accept(name);
    story.advance(50);
    expect(story.measureWait(story.accept("quiet"))).toBeLessThan(200);
    // No tenant is remembered, not even the quiet one.
    story.world.changePlan();
    for (const name of names) story.accept(name);
    story.advance(50);
    expect(story.measureWait(story.accept("quiet"))).toBeLessThan(1_000);
    expect(story.findTerm()).toBe(term);
    story.end();
  }, 90_000);
});

describe("at a relay that tenants share", () => {
  for (const [name, tell] of Object.entries(SLOT_STORIES)) test(name, tell, 90_000);
});

describe("a shard that changes hands", () => {
  const SLOW_MS = 30_000;

  function twoShards(): Story {
    const tenants = [...tenantsLike(["slow", "quiet"]), ...tenantsLike(["other"], { shard: 1 })];
    const story = new Story({ tenants, shards: 2, processes: 2, relays: new Map([["slow", "slow-relay"]]) });
    story.trouble("slow", "slow", 10 * MINUTE_MS);
    story.plotDelay("slow", SLOW_MS);
    return story;
  }

  function acceptSlow(story: Story): readonly string[] {
    const slow = story.acceptMany(5, "slow");
    story.until("they are in flight", () => story.world.provider.callsInFlight === 5);
    return slow;
  }

  test("because its process stops waits for no slow delivery", () => {
    const story = twoShards();
    const slow = acceptSlow(story);
    story.world.drain(story.findOwner());
    expect(story.measureWait(story.accept("quiet"))).toBeLessThan(2_000);
    expect(story.measureWait(story.accept("other", "bob@example.com"))).toBeLessThan(2_000);
    story.end();
    // It was told to stop before they were done, and has broken them off.
    for (const jobId of slow) expect(story.outcomeFor(jobId).status).toBe("success");
  });

  test("because a process joined waits for no slow delivery, and repeats none", () => {
    const story = twoShards();
    const place = story.findOwner();
    story.world.drain(place);
    story.until("the other has both shards", () => story.findOwner() === 1 - place);
    // A process gives up its newest shards first.
    const slow = acceptSlow(story);
    story.until("one that has joined has the shard", () => story.findOwner() === place);
    expect(story.measureWait(story.accept("quiet"))).toBeLessThan(2_000);
    expect(story.measureWait(story.accept("other", "bob@example.com"))).toBeLessThan(2_000);
    story.until("the slow ones are done", () => slow.every((jobId) => story.outcomeFor(jobId).status === "success"));
    story.end();
    for (const jobId of slow) expect(story.outcomeFor(jobId)).toEqual(ONCE);
  });
});

describe("an outage of a relay", () => {
  for (const state of ["away", "silent"] as const) {
    test(`(${state}) of an hour costs no message, and no attempt`, () => {
      const story = new Story();
      story.trouble("acme", state, 60 * MINUTE_MS);
      const jobs = story.acceptMany(40);
      story.advance(59 * MINUTE_MS);
      for (const jobId of jobs) expect(story.countAttempts(jobId)).toBe(0);
      story.until(
        "all are delivered",
        () => jobs.every((jobId) => story.outcomeFor(jobId).handOvers === 1),
        5 * MINUTE_MS,
      );
      story.end();
      for (const jobId of jobs) expect(story.outcomeFor(jobId)).toEqual(ONCE);
    }, 300_000);
  }

  test("that outlasts the plan's hold fails a message then, and not before", () => {
    const plan = {
      name: "short",
      requestsPerMinute: 1_000_000,
      deliveriesPerSecond: null,
      ...QUEUE_SHARE,
      holdMs: 10 * MINUTE_MS,
    };
    const story = new Story({ tenants: tenantsLike(["acme"], { plan }) });
    story.trouble("acme", "away", 60 * MINUTE_MS);
    const jobs = story.acceptMany(10);
    story.advance(9.9 * MINUTE_MS);
    for (const jobId of jobs) expect(["pending", "running"]).toContain(story.outcomeFor(jobId).status);
    story.advance(0.6 * MINUTE_MS);
    for (const jobId of jobs) expect(story.outcomeFor(jobId).status).toBe("failed");
    story.end();
    for (const jobId of jobs) expect(story.outcomeFor(jobId)).toEqual(FAILED);
  }, 300_000);
});

describe("a tenant's share of the queue", () => {
  test("refuses jobs beyond its quota, and has room again when jobs end", () => {
    const plan = {
      name: "small",
      requestsPerMinute: 1_000_000,
      deliveriesPerSecond: null,
      ...QUEUE_SHARE,
      queuedJobsMax: 5,
      queuedBytesMax: 1_000_000,
    };
    const story = new Story({ tenants: tenantsLike(["acme"], { plan }) });
    story.trouble("acme", "away", 5 * MINUTE_MS);
    for (let i = 0; i < 10; i += 1) story.world.load.send(story.tenant("acme"), `reader${i}@example.com`);
    story.advance(2_000);
    expect([story.world.load.acknowledgedCount, story.world.load.refusedCount > 0]).toEqual([5, true]);
    story.advance(8 * MINUTE_MS);
    story.world.load.send(story.tenant("acme"), "late@example.com");
    story.advance(2_000);
    expect(story.world.load.acknowledgedCount).toBeGreaterThan(5);
    story.end();
  }, 90_000);
});
