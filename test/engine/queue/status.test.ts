import { expect, test } from "bun:test";
import { UnavailableError } from "../../../src/domain/errors.ts";
import type { AwayRelay, ProcessStatus } from "../../../src/domain/process-status.ts";
import { RedisStatuses } from "../../../src/engine/queue/verbs/status.ts";
import { StatusReport } from "../../../src/engine/status-report.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { queue, redis, useQueueWorld } from "./queue-world.ts";

useQueueWorld();

const MINUTE_MS = 60_000;
const loop = { start: () => {}, stop: () => {}, take: () => 3.26 };

function status(name: string, changes: Partial<ProcessStatus> = {}): ProcessStatus {
  const nowMs = systemClock.nowMs();
  const lists = { delivers: [], records: [], breakers: [], paused: [] };
  return { name, roles: ["api"], startedAtMs: nowMs, toldAtMs: nowMs, loopDelayMs: 0, ...lists, ...changes };
}

const names = async () => (await queue.statuses.statuses()).statuses.map(({ name }) => name);

test("a process is listed as it last told it is, until it withdraws or has told nothing for 15 seconds", async () => {
  const { statuses } = queue;
  await statuses.tellStatus(status("b"), []);
  await statuses.tellStatus(status("a", { delivers: [1] }), []);
  await statuses.tellStatus(status("a", { delivers: [1, 2] }), []);
  expect((await statuses.statuses()).statuses.map(({ name, delivers }) => [name, delivers])).toEqual([
    ["a", [1, 2]],
    ["b", []],
  ]);
  expect(await redis.client.pttl("wb:{members}:status:a")).toBeWithin(10_000, 15_001);
  await statuses.withdrawStatus("b");
  expect(await names()).toEqual(["a"]);
  // Members that are gone leave no entries behind.
  await redis.client.zadd("wb:{members}:statuses", String(Date.now() - 16_000), "a");
  expect(await names()).toEqual([]);
  await statuses.tellStatus(status("c"), []);
  expect(await redis.client.zrange("wb:{members}:statuses", "0", "-1")).toEqual(["c"]);
  await statuses.withdrawStatus("c");
});

test("what another release wrote is left out, and of more processes than are read those that told last are", async () => {
  const { client } = redis;
  await queue.statuses.tellStatus(status("good"), []);
  for (const [name, text] of [
    ["broken", "{"],
    ["other", '{"name":"other"}'],
  ]) {
    await client.set(`wb:{members}:status:${name}`, String(text));
    await client.zadd("wb:{members}:statuses", Date.now(), String(name));
  }
  expect(await names()).toEqual(["good"]);
  const many = Array.from({ length: 250 }, (_, n) => `p${String(n).padStart(3, "0")}`);
  for (const [n, name] of many.entries()) {
    await client.set(`wb:{members}:status:${name}`, JSON.stringify(status(name)));
    await client.zadd("wb:{members}:statuses", Date.now() + n, name);
  }
  const listed = await names();
  expect([listed.length, listed[0], listed.at(-1)]).toEqual([200, "p050", "p249"]);
  await client.del("wb:{members}:statuses");
});

test("accepted jobs add up over processes, by minute and channel, and for the day", async () => {
  const { statuses } = queue;
  const minuteMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const earlierMs = minuteMs - 30 * MINUTE_MS;
  await statuses.tellStatus(status("a"), [{ minuteMs, channel: "email", jobs: 2 }]);
  await statuses.tellStatus(status("b"), [
    { minuteMs, channel: "email", jobs: 3 },
    { minuteMs, channel: "wallet", jobs: 1 },
    { minuteMs: earlierMs, channel: "email", jobs: 7 },
    { minuteMs: minuteMs - 26 * 60 * MINUTE_MS, channel: "email", jobs: 1_000 },
  ]);
  const { accepted, acceptedToday } = await statuses.statuses();
  const isToday = Math.floor(earlierMs / 86_400_000) === Math.floor(minuteMs / 86_400_000);
  expect(acceptedToday).toBe(isToday ? 13 : 6);
  expect(accepted.toSorted((a, b) => a.jobs - b.jobs)).toEqual([
    { minuteMs, channel: "wallet", jobs: 1 },
    { minuteMs, channel: "email", jobs: 5 },
    { minuteMs: earlierMs, channel: "email", jobs: 7 },
  ]);
  for (const key of await redis.client.keys("wb:{members}:accepted*")) {
    expect(await redis.client.pttl(key)).toBeGreaterThan(0);
    await redis.client.del(key);
  }
});

test("a status of many long lists is told without them, also while Redis is full", async () => {
  const relay = "x".repeat(300);
  const breakers = Array.from({ length: 500 }, () => ({
    channel: "email",
    relay,
    state: "open" as const,
    sinceMs: 0,
    waitingJobs: 1,
  }));
  await redis.client.config("SET", "maxmemory", "1");
  try {
    await new RedisStatuses(redis.client).tellStatus(status("large", { breakers }), []);
    const told = (await queue.statuses.statuses()).statuses.find(({ name }) => name === "large");
    expect(told).toMatchObject({ breakers: [], roles: ["api"] });
  } finally {
    await redis.client.config("SET", "maxmemory", "0");
    await queue.statuses.withdrawStatus("large");
  }
});

const HELD = [
  { tenantId: "acme", channel: "email", waits: "paused" },
  { tenantId: "club", channel: "email", waits: "warm_up" },
] as const;

test("a process tells its worst breakers, and each accepted job once at most", async () => {
  const clock = new ManualClock();
  const told: { readonly status: ProcessStatus; readonly jobs: number }[] = [];
  let isAway = false;
  const statuses = {
    tellStatus: async (now: ProcessStatus, accepted: readonly { readonly jobs: number }[]) => {
      told.push({ status: now, jobs: accepted.reduce((sum, { jobs }) => sum + jobs, 0) });
      if (isAway) throw new UnavailableError("Redis is away");
    },
    withdrawStatus: async () => void told.splice(0),
    statuses: () => queue.statuses.statuses(),
  };
  const report = new StatusReport({
    statuses,
    name: "p",
    roles: ["api"],
    clock,
    loop,
    telemetry: new QuietTelemetry(),
  });
  const away = Array.from({ length: 60 }, (_, n): AwayRelay => {
    return { channel: "email", relay: `mx${n}`, isOwn: true, forMs: 5_000, state: "open", why: "", waitingJobs: n };
  });
  report.delivers({ shards: [4], away: () => away, held: (max) => HELD.slice(0, max) });
  report.records({ shards: [5] });
  for (const channel of ["email", "email", "wallet"]) report.noteAccepted(channel, 1);
  await report.tell();
  const [first] = told;
  expect(first?.jobs).toBe(3);
  expect(first?.status).toMatchObject({ delivers: [4], records: [5], loopDelayMs: 3.3, roles: ["api"] });
  expect(first?.status.paused).toEqual([{ tenantId: "acme", channel: "email" }]);
  expect(first?.status.held).toEqual(HELD);
  expect(first?.status.breakers.map(({ waitingJobs }) => waitingJobs)).toEqual(
    Array.from({ length: 50 }, (_, n) => 59 - n),
  );
  isAway = true;
  report.noteAccepted("email", 1);
  await report.tell();
  isAway = false;
  await report.tell();
  expect(told.map(({ jobs }) => jobs)).toEqual([3, 1, 0]);
  await report.stop();
  expect(told).toEqual([]);
});
