import { expect, test } from "bun:test";
import { eventTimeMs } from "../../../src/domain/jobs/event.ts";
import { FENCED, type Lease, type PullResult } from "../../../src/domain/jobs/queue.ts";
import { limits } from "../../../src/domain/limits.ts";
import { ClockWatch } from "../../../src/engine/queue/clock-watch.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { PULL } from "./queue-pulls.ts";
import { accept, first, pullOne, queue, redis, sent, setProcessClock, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

async function pull(lease: Lease, shardTimeMs: number | null): Promise<PullResult> {
  const result = await queue.pull(lease, { ...PULL, shardTimeMs });
  if (result === FENCED) throw new Error("fenced");
  return result;
}

/** The shard's last pull agreed on a time so far from that of Redis, which is as if Redis' clock had been set since. */
async function agreeOn(prefix: string, aheadMs: number, skewMs = 0): Promise<number> {
  const agreedMs = Date.now() + aheadMs;
  await redis.client.set(`${prefix}:skew`, `${skewMs} ${agreedMs}`);
  return agreedMs;
}

async function eventNow({ tenant, lease, prefix }: Awaited<ReturnType<typeof world>>, agreedAheadMs: number) {
  await accept(tenant);
  const job = first(await pullOne(lease, "acme"));
  const agreedMs = await agreeOn(prefix, agreedAheadMs);
  await queue.settle(lease, [sent(job)], null);
  const eventId = Number(await redis.client.get(`${prefix}:clock`));
  return { eventId, aheadMs: eventTimeMs(eventId) - agreedMs };
}

test.each([2 * DAY_MS, 430 * DAY_MS])(
  "while Redis' clock is %d ms ahead, events keep to the agreed time, and stay in order",
  async (stepMs) => {
    const around = await world();
    const during = await eventNow(around, -stepMs);
    expect(during.aheadMs).toBeLessThanOrEqual(limits.clocksApartMs);
    const later = await eventNow(around, -stepMs);
    expect(later.eventId).toBeGreaterThan(during.eventId);
    const after = await eventNow(around, 0);
    expect(Math.abs(after.aheadMs)).toBeLessThan(MINUTE_MS);
    expect(after.eventId).toBeGreaterThan(later.eventId);
  },
);

test("a new owner goes by the earlier one of Redis' clock and its own", async () => {
  const { lease, prefix } = await world();
  // Also the shard's first pull, if they are minutes apart.
  for (const behindMs of [3 * MINUTE_MS, 2 * MINUTE_MS]) {
    setProcessClock(-behindMs);
    expect(Math.abs((await pull(lease, null)).shardTimeMs - Date.now() + behindMs)).toBeLessThan(MINUTE_MS / 2);
    await agreeOn(prefix, -HOUR_MS);
  }
  const agreedMs = await agreeOn(prefix, -2 * DAY_MS);
  setProcessClock(-2 * DAY_MS + MINUTE_MS);
  expect(Math.abs((await pull(lease, null)).shardTimeMs - agreedMs - MINUTE_MS)).toBeLessThan(MINUTE_MS / 2);
  // Both show it: everything stood still for two days.
  await agreeOn(prefix, -2 * DAY_MS);
  setProcessClock(0);
  expect(Math.abs((await pull(lease, null)).shardTimeMs - Date.now())).toBeLessThan(MINUTE_MS);
});

test("a skew that was ahead ends with its owner", async () => {
  const { lease, prefix } = await world();
  await agreeOn(prefix, -MINUTE_MS, 3 * DAY_MS);
  expect(Math.abs((await pull(lease, null)).shardTimeMs - Date.now())).toBeLessThan(MINUTE_MS);
});

test("the shard's time follows clocks that stay ahead of it, and none that is ahead for minutes", async () => {
  const { lease, prefix } = await world();
  const fromMs = await agreeOn(prefix, -8 * HOUR_MS, -8 * HOUR_MS);
  let timeMs = fromMs;
  while (timeMs < fromMs + 9 * MINUTE_MS) timeMs = (await pull(lease, timeMs + MINUTE_MS / 2)).shardTimeMs;
  expect(timeMs).toBeLessThan(fromMs + 10 * MINUTE_MS);
  // The process's own clock is right again for a while, so the count begins anew.
  setProcessClock(-8 * HOUR_MS);
  for (let pulls = 0; pulls < 4; pulls += 1) timeMs = (await pull(lease, timeMs + MINUTE_MS / 2)).shardTimeMs;
  setProcessClock(0);
  timeMs = (await pull(lease, timeMs + MINUTE_MS / 2)).shardTimeMs;
  expect(timeMs).toBeLessThan(fromMs + 13 * MINUTE_MS);
  for (let pulls = 0; pulls < 21; pulls += 1) timeMs = (await pull(lease, timeMs + MINUTE_MS / 2)).shardTimeMs;
  expect(Math.abs(timeMs - Date.now())).toBeLessThan(15 * MINUTE_MS);
});

test("a scheduled job whose time has come by the shard's time alone waits for one more clock, and is looked at before", async () => {
  const { tenant, lease, prefix } = await world();
  await pull(lease, null);
  await accept(tenant, { dueMs: Date.now() + DAY_MS });
  const aheadMs = await agreeOn(prefix, 3 * DAY_MS, 3 * DAY_MS);
  const early = await pull(lease, aheadMs);
  expect(early.ready).toEqual([]);
  expect(early.nextDueMs).toBeLessThanOrEqual(DAY_MS / 8);
  setProcessClock(DAY_MS + MINUTE_MS);
  expect((await pull(lease, aheadMs + DAY_MS / 8 + MINUTE_MS)).ready).toHaveLength(1);
});

test.each([3 * DAY_MS, -3 * DAY_MS])(
  "a process whose clock is %d ms off schedules for the time that is said",
  async (offMs) => {
    const { tenant, lease } = await world();
    await pull(lease, null);
    setProcessClock(offMs);
    const jobId = await accept(tenant, { dueMs: Date.now() + HOUR_MS });
    expect((await pull(lease, Date.now())).ready).toEqual([]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "pending" });
    expect((await pull(lease, Date.now() + HOUR_MS)).nextDueMs ?? 0).toBeLessThanOrEqual(HOUR_MS);
  },
);

test("clocks that are apart are told once, with a count, until they agree for a minute", () => {
  let nowMs = Date.UTC(2026, 0, 15);
  const clock = { ...systemClock, nowMs: () => nowMs, monotonicMs: () => nowMs };
  const said: string[] = [];
  const values = new Map<string, number>();
  const watch = new ClockWatch(clock, {
    count: (name, _labels, by = 1) => void values.set(name, (values.get(name) ?? 0) + by),
    gauge: (name, value) => void values.set(name, value),
    time: () => {},
    log: (level) => void said.push(level),
  });
  const hear = (aheadMs: number) => {
    watch.heard({ redisMs: nowMs + aheadMs, shardTimeMs: nowMs, askedMs: nowMs });
  };
  hear(0);
  expect([...values]).toEqual([
    ["clock_jumps", 0],
    ["clocks_apart_seconds", 0],
  ]);
  for (let pulls = 0; pulls < 3; pulls += 1) hear(2 * DAY_MS);
  expect([said, [...values]]).toEqual([
    ["error"],
    [
      ["clock_jumps", 1],
      ["clocks_apart_seconds", 172_800],
    ],
  ]);
  hear(0);
  expect(said).toEqual(["error"]);
  nowMs += 2 * MINUTE_MS;
  hear(0);
  expect([said, values.get("clocks_apart_seconds")]).toEqual([["error", "info"], 0]);
  hear(-HOUR_MS);
  expect(values.get("clock_jumps")).toBe(2);
});
