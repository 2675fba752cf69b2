import { expect, test } from "bun:test";
import { FENCED } from "../../../src/domain/jobs/queue.ts";
import { ACME_MAIL, queue, redis, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const DAY = 20_000;

/** A call about one tenant queue's day of 50. */
function call(known: number, wanted: number, changes: { readonly allowance?: number; readonly day?: number } = {}) {
  return { tenantQueue: ACME_MAIL, day: DAY, allowance: 50, known, wanted, ...changes };
}

test("nobody takes more than the day allows", async () => {
  const { lease } = await world();
  expect(await queue.allow(lease, call(0, 30))).toBe(30);
  expect(await queue.allow(lease, call(30, 30))).toBe(50);
  expect(await queue.allow(lease, call(50, 1))).toBe(50);
});

test("a repeated call takes nothing twice, and learns what the first one took", async () => {
  const { lease } = await world();
  expect(await queue.allow(lease, call(0, 3))).toBe(3);
  expect(await queue.allow(lease, call(0, 3))).toBe(3);
  // Also where the repeat asks for more, which could lead to the same answer.
  expect(await queue.allow(lease, call(2, 5))).toBe(3);
  expect(await queue.allow(lease, call(0, 0))).toBe(3);
});

test("each day and each channel has its own count", async () => {
  const { lease } = await world();
  await queue.allow(lease, call(0, 50));
  expect(await queue.allow(lease, call(0, 1, { day: DAY + 1 }))).toBe(1);
  expect(await queue.allow(lease, { ...call(0, 2), tenantQueue: { tenantId: "acme", channel: "whatsapp" } })).toBe(2);
});

test("a lowered allowance takes nothing back and grants nothing more", async () => {
  const { lease } = await world();
  await queue.allow(lease, call(0, 40));
  expect(await queue.allow(lease, call(40, 5, { allowance: 20 }))).toBe(40);
  expect(await queue.allow(lease, call(40, 5, { allowance: 100 }))).toBe(45);
});

test("when Redis lost its last writes, units that the owner knows to be taken stay taken", async () => {
  const { lease, prefix } = await world();
  await queue.allow(lease, call(0, 20));
  await redis.client.set(`${prefix}:allowance:acme/e:${DAY}`, 5);
  expect(await queue.allow(lease, call(20, 4))).toBe(24);
  expect(await redis.client.get(`${prefix}:allowance:acme/e:${DAY}`)).toBe("24");
});

test("an owner without the lease takes nothing", async () => {
  const { lease, prefix } = await world();
  await queue.release(lease);
  expect(await queue.allow(lease, call(0, 1))).toBe(FENCED);
  expect(await redis.client.keys(`${prefix}:allowance:*`)).toEqual([]);
});

test("a count expires after its day, not before", async () => {
  const { lease, prefix } = await world();
  await queue.allow(lease, call(0, 1));
  const dayMs = 24 * 60 * 60 * 1000;
  expect(await redis.client.pttl(`${prefix}:allowance:acme/e:${DAY}`)).toBeGreaterThan(dayMs);
});
