import { beforeEach, expect, test } from "bun:test";
import { limits } from "../../../src/domain/limits.ts";
import { queue, redis, useQueueWorld } from "./queue-world.ts";

useQueueWorld();

const NUMBER = "106540352242922";
const ADA = "5491122334455";
const KEY = `wb:{incoming}:writers:${NUMBER}`;

beforeEach(async () => {
  await redis.client.flushall();
});

const note = (from: string, writtenAtMs: number | null) =>
  queue.replyWindows.note([{ phoneNumberId: NUMBER, from, writtenAtMs }]);
const last = (...from: readonly string[]) => queue.replyWindows.lastWrittenMs(NUMBER, from);

test("a person's latest message to a number counts, in whatever order and however often messages arrive", async () => {
  const nowMs = Date.now();
  expect(await last(ADA)).toBeNull();
  await note(ADA, nowMs - 60_000);
  await note(ADA, nowMs - 60_000);
  await note(ADA, nowMs - 120_000);
  expect(await last(ADA)).toBe(nowMs - 60_000);
  expect(await last("541122334455", ADA)).toBe(nowMs - 60_000);
  expect(await last("541122334455")).toBeNull();
  expect(await queue.replyWindows.lastWrittenMs("777", [ADA])).toBeNull();
});

test("a message without a time, or of a time to come, was written now; an old one does not count", async () => {
  const before = Date.now() - 1;
  await note(ADA, null);
  await note("1", Date.now() + 3_600_000);
  await note("2", Date.now() - limits.writersKeptMs - 1_000);
  for (const writer of [ADA, "1"]) {
    const lastMs = (await last(writer)) ?? 0;
    expect(lastMs).toBeGreaterThanOrEqual(before);
    expect(lastMs).toBeLessThanOrEqual(Date.now() + 1);
  }
  expect(await last("2")).toBeNull();
});

test("writers are forgotten after two days, and the whole number when nobody writes any more", async () => {
  const old = Date.now() - limits.writersKeptMs - 1_000;
  for (const name of ["a", "b", "c"]) await redis.client.zadd(KEY, old, name);
  await note(ADA, null);
  expect(await redis.client.zrange(KEY, "0", "-1")).toEqual(["c", ADA]);
  await note(ADA, null);
  expect(await redis.client.zrange(KEY, "0", "-1")).toEqual([ADA]);
  const ttlMs = await redis.client.pttl(KEY);
  expect(ttlMs).toBeGreaterThan(limits.writersKeptMs - 60_000);
});

test("a number remembers a bounded number of writers, those who wrote last", async () => {
  const nowMs = Date.now();
  const known = Array.from({ length: limits.writersMax }, (_, i) => [
    String(nowMs - limits.writersMax + i),
    `w${i}`,
  ]).flat();
  for (let at = 0; at < known.length; at += 10_000)
    await redis.client.call("zadd", KEY, ...known.slice(at, at + 10_000));
  await note(ADA, nowMs);
  expect(await redis.client.zcard(KEY)).toBe(limits.writersMax);
  expect([await last("w0"), await last("w1"), await last(ADA)]).toEqual([null, nowMs - limits.writersMax + 1, nowMs]);
});

test("a call of many messages is noted in bounded pieces", async () => {
  const all = Array.from({ length: 1_201 }, (_, i) => ({ phoneNumberId: NUMBER, from: `${i}`, writtenAtMs: null }));
  await queue.replyWindows.note(all);
  expect(await redis.client.zcard(KEY)).toBe(1_201);
});
