import { expect, test } from "bun:test";
import { RelayWorld, TAKES } from "./relay-world.ts";

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
