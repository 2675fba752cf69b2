import { expect, test } from "bun:test";
import { AgreedTime } from "../../src/runtime/agreed-time.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW_MS = Date.UTC(2026, 10, 27);

/** The clocks of three processes, and a mark that outlives one. */
function around(mark: number | null) {
  const kept = {
    mark,
    redisMs: NOW_MS,
    engineMs: NOW_MS,
    processMs: NOW_MS,
    newestMs: null as number | null,
    monotonicMs: 0,
  };
  const start = () =>
    new AgreedTime({
      clock: { ...systemClock, nowMs: () => kept.processMs, monotonicMs: () => kept.monotonicMs },
      others: [async () => kept.redisMs, async () => kept.engineMs],
      mark: { read: async () => kept.mark, write: async (ms) => void (kept.mark = ms) },
      newestEventMs: async () => kept.newestMs,
    });
  const pass = (ms: number) => {
    for (const clock of ["redisMs", "engineMs", "processMs", "monotonicMs"] as const) kept[clock] += ms;
  };
  return { kept, start, pass };
}

test.each(["redisMs", "engineMs", "processMs"] as const)(
  "one clock alone (%s) that is ahead removes nothing",
  async (one) => {
    const { kept, start } = around(NOW_MS);
    kept[one] += 430 * DAY_MS;
    const time = start();
    expect(await time.nowMs()).toBe(NOW_MS);
    kept.monotonicMs += HOUR_MS;
    expect(await time.nowMs()).toBe(NOW_MS);
  },
);

test("all clocks 430 days ahead, for a minute, at a start or for an hour, remove a day's worth at most", async () => {
  const { kept, start, pass } = around(NOW_MS);
  const running = start();
  await running.nowMs();
  for (const clock of ["redisMs", "engineMs", "processMs"] as const) kept[clock] += 430 * DAY_MS;
  pass(60_000);
  expect(await running.nowMs()).toBe(NOW_MS);
  for (let starts = 0; starts < 3; starts += 1) expect(await start().nowMs()).toBe(NOW_MS);
  pass(HOUR_MS);
  expect(await running.nowMs()).toBe(NOW_MS + DAY_MS);
  for (const clock of ["redisMs", "engineMs", "processMs"] as const) kept[clock] -= 430 * DAY_MS;
  expect(await running.nowMs()).toBe(kept.processMs);
});

test("after weeks without a process the time is caught up with, a day in an hour", async () => {
  const { start, pass } = around(NOW_MS - 3 * DAY_MS);
  const time = start();
  expect(await time.nowMs()).toBe(NOW_MS - 3 * DAY_MS);
  for (let hour = 0; hour < 4; hour += 1) {
    pass(HOUR_MS);
    await time.nowMs();
  }
  expect(await time.nowMs()).toBe(NOW_MS + 4 * HOUR_MS);
});

test("without a mark it begins at the newest event, and with none at the clocks", async () => {
  const upgraded = around(null);
  upgraded.kept.newestMs = NOW_MS - 5 * DAY_MS;
  expect(await upgraded.start().nowMs()).toBe(NOW_MS - 5 * DAY_MS);
  expect(await around(null).start().nowMs()).toBe(NOW_MS);
});
