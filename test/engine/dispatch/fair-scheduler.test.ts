import { expect, test } from "bun:test";
import { type Contender, FairScheduler } from "../../../src/engine/dispatch/fair-scheduler.ts";

/** Deliveries in flight, in the order of their start. */
class Wire {
  private readonly deliveries: Tenant[] = [];
  push(tenant: Tenant): void {
    this.deliveries.push(tenant);
  }
  /** Every delivery takes the same time, so they end in the order of their start. */
  finish(count: number): void {
    for (let i = 0; i < count; i += 1) this.deliveries.shift()?.finishOne();
  }
}

/** A tenant whose deliveries end when the test says so. */
class Tenant implements Contender {
  inFlight = 0;
  started = 0;
  constructor(
    private readonly scheduler: FairScheduler,
    public waiting: number,
    private readonly cost = 1,
    private readonly windowMax = 64,
    private readonly wire = new Wire(),
  ) {
    scheduler.contend(this);
  }
  nextCost(): number | null {
    return this.waiting > 0 && this.inFlight < this.windowMax ? this.cost : null;
  }
  startNext(): void {
    this.waiting -= 1;
    this.inFlight += 1;
    this.started += 1;
    this.wire.push(this);
  }
  finishOne(): void {
    this.inFlight -= 1;
    this.scheduler.release();
    if (this.waiting > 0) this.scheduler.contend(this);
  }
}

test("a lone tenant may use its whole window", () => {
  const scheduler = new FairScheduler(512);
  expect(new Tenant(scheduler, 1000).started).toBe(64);
});

test("there are never more deliveries than slots, and few slots idle while tenants wait", () => {
  const scheduler = new FairScheduler(100);
  const tenants = Array.from({ length: 40 }, () => new Tenant(scheduler, 50));
  for (let i = 0; i < 1900; i += 1) {
    const busy = tenants.filter((tenant) => tenant.inFlight > 0);
    busy[i % busy.length]?.finishOne();
    const waiting = tenants.some((tenant) => tenant.waiting > 0);
    expect(scheduler.slotsUsed).toBeLessThanOrEqual(100);
    if (waiting) expect(scheduler.slotsUsed).toBeGreaterThanOrEqual(50);
  }
});

test("tenants with queued jobs get equal shares, however many jobs each has", () => {
  const scheduler = new FairScheduler(64);
  const wire = new Wire();
  const big = new Tenant(scheduler, 1_000_000, 1, 64, wire);
  const small = Array.from({ length: 19 }, () => new Tenant(scheduler, 100_000, 1, 64, wire));
  wire.finish(20_000);
  for (const tenant of small) expect(Math.abs(tenant.started - big.started) / big.started).toBeLessThan(0.15);
});

test("long messages cost their tenant turns", () => {
  const scheduler = new FairScheduler(32);
  const wire = new Wire();
  const heavy = new Tenant(scheduler, 100_000, 8, 64, wire);
  const light = Array.from({ length: 40 }, () => new Tenant(scheduler, 100_000, 1, 64, wire));
  wire.finish(8000);
  for (const tenant of light) expect(tenant.started / heavy.started).toBeGreaterThan(1.5);
});

test("tenants whose provider hangs leave slots for the first messages of others", () => {
  const scheduler = new FairScheduler(512);
  for (let i = 0; i < 100; i += 1) new Tenant(scheduler, 1000);
  const quiet = Array.from({ length: 28 }, () => new Tenant(scheduler, 3));
  for (const tenant of quiet) expect(tenant.started).toBeGreaterThanOrEqual(1);
});

test("asking a tenant for its next delivery may let others contend, and no turn is lost or doubled", () => {
  const scheduler = new FairScheduler(10);
  const started: string[] = [];
  const contender = (name: string, waiting: number, ask = () => {}): Contender => ({
    inFlight: 0,
    nextCost: () => {
      ask();
      return waiting > 0 ? 1 : null;
    },
    startNext: () => {
      waiting -= 1;
      started.push(name);
    },
  });
  const second = contender("second", 2);
  const first = contender("first", 3, () => scheduler.contend(second));
  scheduler.contend(first);
  expect(started.toSorted()).toEqual(["first", "first", "first", "second", "second"]);
  expect(scheduler.slotsUsed).toBe(5);
});

test("a contender that throws once keeps nobody from the slots afterwards", () => {
  const scheduler = new FairScheduler(8);
  let isBroken = true;
  const broken: Contender = {
    inFlight: 0,
    nextCost: () => {
      if (isBroken) throw new Error("broken");
      return null;
    },
    startNext: () => {},
  };
  expect(() => scheduler.contend(broken)).toThrow("broken");
  isBroken = false;
  expect(new Tenant(scheduler, 3).started).toBe(3);
});

test("a delivery in flight takes a slot under the same rules as a new one", () => {
  const scheduler = new FairScheduler(8);
  const lane = { inFlight: 0, nextCost: () => null, startNext: () => {} };
  for (let i = 0; i < 8; i += 1) if (scheduler.take(lane)) lane.inFlight += 1;
  expect(lane.inFlight).toBeLessThan(6);
  const other = { ...lane, inFlight: 0 };
  expect(scheduler.take(other)).toBe(true);
});
