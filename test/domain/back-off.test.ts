import { expect, test } from "bun:test";
import { BackOff, type BackOffBounds, backOffMs } from "../../src/domain/back-off.ts";

const BOUNDS: BackOffBounds = { firstMs: 100, maxMs: 1_000 };
const always = (share: number) => ({ next: () => share });

const CASES: readonly [BackOffBounds, failures: number, chance: number, ms: number][] = [
  [BOUNDS, 0, 1, 100],
  [BOUNDS, 1, 1, 200],
  [BOUNDS, 3, 1, 800],
  [BOUNDS, 4, 1, 1_000],
  [BOUNDS, 5_000, 1, 1_000],
  [BOUNDS, 0, 0, 50],
  [BOUNDS, 1, 0.5, 150],
  [{ ...BOUNDS, factor: 3 }, 2, 1, 900],
  [{ ...BOUNDS, factor: 1 }, 9, 1, 100],
  [{ ...BOUNDS, jitter: 0 }, 1, 0, 200],
  [{ ...BOUNDS, jitter: 0.25 }, 1, 0, 150],
  [{ ...BOUNDS, jitter: 1 }, 4, 0.1, 100],
];

test.each(CASES)("%p after %p failures, with a chance of %p, waits for %p ms", (bounds, failures, chance, ms) => {
  expect(backOffMs(bounds, failures, always(chance))).toBeCloseTo(ms, 9);
});

test("each failure in a row lengthens the wait, until a success", () => {
  const waits = new BackOff(BOUNDS, always(1));
  expect([waits.nextMs(), waits.nextMs(), waits.nextMs()]).toEqual([100, 200, 400]);
  waits.reset();
  expect(waits.nextMs()).toBe(100);
});
