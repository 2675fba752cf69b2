import { expect, test } from "bun:test";
import { Pacer } from "../../../src/engine/dispatch/pacer.ts";
import { RelayWorld, TAKES } from "./relay-world.ts";

/** Starts of a tenant that always has something to send. */
function starts(perSecond: number, untilMs: number): number[] {
  const pacer = new Pacer();
  const at: number[] = [];
  for (let nowMs = 0; nowMs < untilMs; nowMs += 1) {
    while (pacer.waitMs(nowMs, perSecond) === 0) {
      pacer.take(nowMs, perSecond);
      at.push(nowMs);
    }
  }
  return at;
}

test.each([1, 3, 10, 80, 500])("allows %i deliveries per second", (perSecond) => {
  const at = starts(perSecond, 20_000);
  expect(Math.abs(at.length - perSecond * 20)).toBeLessThanOrEqual(1 + perSecond / 10);
  // No second holds more than the rate and the burst.
  for (const from of at) {
    const within = at.filter((ms) => ms >= from && ms < from + 1000).length;
    expect(within).toBeLessThanOrEqual(perSecond + Math.max(1, Math.ceil(perSecond / 10)));
  }
});

test("without a limit nothing waits", () => {
  const pacer = new Pacer();
  pacer.take(0, null);
  expect(pacer.waitMs(0, null)).toBe(0);
});

test("a faster pace shortens a wait that has begun, from when it is asked for", () => {
  const pacer = new Pacer();
  pacer.take(0, 0.01);
  expect(pacer.waitMs(1_000, 0.01)).toBe(99_000);
  expect(pacer.waitMs(2_000, 2)).toBe(500);
  expect(pacer.waitMs(2_400, 2)).toBe(100);
});

test("a tenant whose pace is raised goes on within a minute, however long it would have waited", async () => {
  const world = new RelayWorld(() => TAKES);
  const { plan } = world.tenant("acme");
  const slow = world.tenant("acme", null, { plan: { ...plan, deliveriesPerSecond: 0.001 } });
  const jobs = world.accept(slow, 10);
  const dispatcher = world.start();
  await world.advance(5_000);
  expect(world.listCalls(jobs)).toHaveLength(1);
  world.tenant("acme", null, { plan: { ...plan, deliveriesPerSecond: 100 } });
  await world.advance(61_000);
  expect(world.listCalls(jobs)).toHaveLength(10);
  await world.stop(dispatcher);
});

test("a tenant's pace outlives its last job, and nothing of the tenant is held once it no longer matters", async () => {
  const world = new RelayWorld(() => TAKES);
  const { plan } = world.tenant("any");
  const tenant = world.tenant("paced", null, { plan: { ...plan, deliveriesPerSecond: 0.1 } });
  const dispatcher = world.start();
  const jobs = world.accept(tenant);
  await world.advance(2_000);
  const asked = { tenantId: "paced", channel: "email", jobId: jobs[0] ?? "" };
  const isHeld = () => dispatcher.whyWaits(0, asked) !== null;
  expect([world.statuses(tenant, jobs), isHeld()]).toEqual([{ "success after 1": 1 }, true]);
  jobs.push(...world.accept(tenant));
  await world.advance(7_000);
  expect(world.listCalls(jobs)).toHaveLength(1);
  await world.advance(3_000);
  expect([world.listCalls(jobs).length, isHeld()]).toEqual([2, true]);
  await world.advance(12_000);
  expect(isHeld()).toBe(false);
  await world.stop(dispatcher);
});
