import { expect, test } from "bun:test";
import { limits } from "../../src/domain/limits.ts";
import { Pace } from "../../src/domain/pace.ts";

/** Times of events that always wait for their turn. */
function starts(perSecond: number, untilMs: number): number[] {
  const pace = new Pace(limits.paceBurstMs);
  const at: number[] = [];
  for (let nowMs = 0; nowMs < untilMs; nowMs += 1) {
    while (pace.waitMs(nowMs, perSecond) === 0) {
      pace.take(nowMs, perSecond);
      at.push(nowMs);
    }
  }
  return at;
}

test.each([1, 3, 10, 80, 500])("allows %i events per second", (perSecond) => {
  const at = starts(perSecond, 20_000);
  expect(Math.abs(at.length - perSecond * 20)).toBeLessThanOrEqual(1 + perSecond / 10);
  // No second holds more than the rate and the burst.
  for (const from of at) {
    const within = at.filter((ms) => ms >= from && ms < from + 1000).length;
    expect(within).toBeLessThanOrEqual(perSecond + Math.max(1, Math.ceil(perSecond / 10)));
  }
});

test("without a limit nothing waits", () => {
  const pace = new Pace(limits.paceBurstMs);
  pace.take(0, null);
  expect(pace.waitMs(0, null)).toBe(0);
});

test("a faster pace shortens a wait that has begun, from when it is asked for", () => {
  const pace = new Pace(limits.paceBurstMs);
  pace.take(0, 0.01);
  expect(pace.waitMs(1_000, 0.01)).toBe(99_000);
  expect(pace.waitMs(2_000, 2)).toBe(500);
  expect(pace.waitMs(2_400, 2)).toBe(100);
});

const BURSTS: readonly [burstMs: number, perSecond: number, atOnce: number, thenMs: number][] = [
  [0, 20, 1, 50],
  [100, 5, 1, 200],
  [100, 80, 8, 12.5],
  [100_000, 10, 1_000, 100],
];

test.each(BURSTS)(
  "a burst worth %d ms at %d per second is %d events; the next one comes %d ms later",
  (burstMs, perSecond, atOnce, thenMs) => {
    const pace = new Pace(burstMs);
    let taken = 0;
    for (; pace.waitMs(0, perSecond) === 0; taken += 1) pace.take(0, perSecond);
    expect([taken, pace.waitMs(0, perSecond)]).toEqual([atOnce, thenMs]);
    expect(pace.waitMs(0, perSecond, 2)).toBe(thenMs + 2000 / perSecond);
    expect(pace.settledInMs(0)).toBe((atOnce * 1000) / perSecond);
  },
);
