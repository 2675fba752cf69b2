import { describe, expect, test } from "bun:test";
import { type Contender, FairScheduler } from "../../../src/engine/dispatch/fair-scheduler.ts";
import { SlotTime } from "../../../src/engine/dispatch/slot-time.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

/** A tenant with so many messages, each of which takes so long. */
class Tenant implements Contender {
  readonly time = new SlotTime();
  inFlight = 0;
  started = 0;
  /** The longest that it has waited without a delivery in flight. */
  longestMs = 0;
  private sinceMs: number;
  constructor(
    private readonly scheduler: FairScheduler,
    private readonly clock: VirtualClock,
    public waiting: number,
    public takesMs = 1_000,
    private readonly windowMax = 64,
  ) {
    this.sinceMs = clock.monotonicMs();
    scheduler.contend(this);
  }
  send(count: number): void {
    if (this.waiting === 0 && this.inFlight === 0) this.sinceMs = this.clock.monotonicMs();
    this.waiting += count;
    this.scheduler.contend(this);
  }
  isReady(): boolean {
    return this.waiting > 0 && this.inFlight < this.windowMax;
  }
  startNext(): void {
    const startedMs = this.clock.monotonicMs();
    if (this.inFlight === 0) this.longestMs = Math.max(this.longestMs, startedMs - this.sinceMs);
    this.waiting -= 1;
    this.inFlight += 1;
    this.started += 1;
    this.clock.setTimer(this.takesMs, () => {
      this.inFlight -= 1;
      this.sinceMs = this.clock.monotonicMs();
      this.time.spent(this.sinceMs - startedMs, this.sinceMs);
      this.scheduler.release(this);
      if (this.waiting > 0) this.scheduler.contend(this);
    });
  }
}

function aWorld(slots: number) {
  const clock = new VirtualClock();
  const scheduler = new FairScheduler(slots, clock);
  const tenant = (waiting: number, takesMs?: number) => new Tenant(scheduler, clock, waiting, takesMs);
  const tenants = (count: number, waiting: number, takesMs?: number) =>
    Array.from({ length: count }, () => tenant(waiting, takesMs));
  return { clock, scheduler, tenant, tenants };
}

test("a lone tenant may use its whole window", () => {
  expect(aWorld(512).tenant(1_000).started).toBe(64);
});

test("there are never more deliveries than slots, and few slots idle while tenants wait", async () => {
  const { clock, scheduler, tenants } = aWorld(100);
  const all = tenants(40, 50).map((tenant, i) => Object.assign(tenant, { takesMs: 300 + 50 * i }));
  for (let i = 0; i < 50; i += 1) {
    await clock.advance(100);
    expect(scheduler.slotsUsed).toBeLessThanOrEqual(100);
    if (all.some(({ waiting }) => waiting > 0)) expect(scheduler.slotsUsed).toBeGreaterThanOrEqual(50);
  }
});

test("tenants with queued jobs get equal slot time, however many jobs each has and however long they take", async () => {
  const { clock, tenant, tenants } = aWorld(16);
  const big = tenant(1_000_000, 1_000);
  const longer = tenant(1_000_000, 1_900);
  const small = tenants(18, 100_000, 1_000);
  await clock.advance(300_000);
  const usedMs = ({ started, takesMs }: Tenant) => started * takesMs;
  for (const each of [longer, ...small]) expect(Math.abs(usedMs(each) - usedMs(big)) / usedMs(big)).toBeLessThan(0.15);
});

describe("tenants whose messages take ten seconds, or nine minutes, do not delay one whose messages take 11 ms", () => {
  for (const takesMs of [10_000, 540_000]) {
    for (const [count, messages] of [
      [60, 5],
      [600, 5],
      [60, 500],
      [600, 500],
    ] as const) {
      test(`${count} that send all at once, ${takesMs / 1_000} s, and a new one with ${messages}`, async () => {
        const { clock, tenant, tenants } = aWorld(48);
        tenants(count, 40, takesMs);
        // At any moment, also just behind them.
        for (let i = 0; i < 8; i += 1) {
          const healthy = tenant(messages, 11);
          await clock.advance(i === 0 ? 2_500 : 1_700);
          expect([i, healthy.waiting, healthy.longestMs < 2_000]).toEqual([i, 0, true]);
        }
      });
    }
  }
});

test("one second a message is no reason to wait either", async () => {
  const { clock, tenant, tenants } = aWorld(48);
  tenants(60, 40, 10_000);
  await clock.advance(5_000);
  const middle = tenant(1, 1_000);
  for (let i = 0; i < 20; i += 1) {
    await clock.advance(1_700);
    middle.send(1);
  }
  expect(middle.longestMs).toBeLessThan(2_000);
});

test("messages that suddenly take long, everyone's but one's, do not delay that one", async () => {
  const { clock, tenant, tenants } = aWorld(48);
  const healthy = tenant(5, 11);
  const others = tenants(60, 5, 11);
  await clock.advance(5_000);
  for (const other of others) {
    other.takesMs = 10_000;
    other.send(40);
  }
  for (let i = 0; i < 60; i += 1) {
    await clock.advance(1_000);
    healthy.send(1);
  }
  expect(healthy.longestMs).toBeLessThan(2_000);
});

test("whose messages take long progresses beside any number of others", async () => {
  const { clock, tenants } = aWorld(48);
  const slow = tenants(60, 1_000, 10_000);
  // More than all slots can take.
  const quick = tenants(100, 1_000_000, 200);
  await clock.advance(150_000);
  expect(Math.min(...slow.map(({ started }) => started))).toBeGreaterThan(1);
  expect(Math.min(...quick.map(({ started }) => started))).toBeGreaterThan(100);
}, 60_000);

test("when everybody's messages take long, three quarters of the slots are used, by all in turn", async () => {
  const { clock, scheduler, tenants } = aWorld(48);
  const all = tenants(60, 100, 10_000);
  // The first of them found all slots free.
  await clock.advance(60_000);
  const before = all.map(({ started }) => started);
  await clock.advance(200_000);
  expect(scheduler.slotsUsed).toBeGreaterThanOrEqual(36);
  const since = all.map(({ started }, i) => started - (before[i] ?? 0));
  expect(Math.min(...since)).toBeGreaterThanOrEqual(6);
  expect(Math.max(...since)).toBeLessThanOrEqual(14);
});

test("a tenant whose messages took long, and take little time now, is soon served like any other", async () => {
  const { clock, tenant, tenants } = aWorld(48);
  const recovered = tenant(1, 10_000);
  tenants(60, 40, 10_000);
  await clock.advance(30_000);
  recovered.takesMs = 11;
  recovered.send(20);
  await clock.advance(25_000);
  expect(recovered.waiting).toBe(0);
  recovered.longestMs = 0;
  for (let i = 0; i < 10; i += 1) {
    recovered.send(1);
    await clock.advance(1_000);
  }
  expect(recovered.longestMs).toBeLessThan(2_000);
});

test("tenants whose provider hangs leave slots for others that come one by one", async () => {
  const { clock, tenant, tenants } = aWorld(512);
  tenants(1_000, 5, 60_000);
  for (let i = 0; i < 20; i += 1) {
    const quiet = tenant(1, 60_000);
    await clock.advance(1_000);
    expect(quiet.started).toBe(1);
  }
});

test("asking a tenant for its next delivery may let others contend, and no turn is lost or doubled", () => {
  const { scheduler } = aWorld(10);
  const started: string[] = [];
  const contender = (name: string, waiting: number, ask = () => {}): Contender => ({
    time: new SlotTime(),
    isReady: () => {
      ask();
      return waiting > 0;
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
  const { scheduler, tenant } = aWorld(8);
  let isBroken = true;
  const broken: Contender = {
    time: new SlotTime(),
    isReady: () => {
      if (isBroken) throw new Error("broken");
      return false;
    },
    startNext: () => {},
  };
  expect(() => scheduler.contend(broken)).toThrow("broken");
  isBroken = false;
  expect(tenant(3).started).toBe(3);
});

test("a delivery in flight takes a slot under the same rules as a new one", () => {
  const { scheduler } = aWorld(8);
  const lane = { time: new SlotTime(), isReady: () => false, startNext: () => {} };
  lane.time.spent(11, 0);
  let taken = 0;
  while (scheduler.take(lane)) taken += 1;
  expect(taken).toBeLessThan(6);
  expect(scheduler.take({ ...lane })).toBe(true);
});
