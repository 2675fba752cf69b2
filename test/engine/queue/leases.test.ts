import { expect, test } from "bun:test";
import { FENCED } from "../../../src/domain/jobs/queue.ts";
import { eventually } from "../../support/eventually.ts";
import { PULL } from "./queue-pulls.ts";
import { accept, acquire, first, nextShard, pullOne, queue, redis, sent, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

test("a lease has one holder, and its token is never used again", async () => {
  const shard = nextShard();
  const one = await acquire(shard, "dispatcher");
  expect(await queue.acquire(shard, "dispatcher", "other", null)).toBeNull();
  await queue.release(one);
  const two = await acquire(shard, "dispatcher");
  expect(two.token).not.toBe(one.token);
  await queue.release(one);
  expect(await queue.renew(two)).toBe(true);
});

test("no key of a lease expires: no silence takes it from its holder", async () => {
  const { tenant, lease, prefix } = await world();
  await accept(tenant);
  expect(await redis.client.pttl(`${prefix}:lease:dispatcher`)).toBe(-1);
  await queue.renew(lease);
  expect(await redis.client.pttl(`${prefix}:lease:dispatcher`)).toBe(-1);
  expect(await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))])).toBe("settled");
});

test("a lease is taken over only as the caller saw it: a renewal in between keeps it", async () => {
  const shard = nextShard();
  const one = await acquire(shard, "dispatcher");
  const seen = (await queue.leases("dispatcher", shard + 1))[shard] ?? null;
  expect(seen).toEqual({ token: one.token, renewals: 0 });
  await queue.renew(one);
  expect(await queue.acquire(shard, "dispatcher", "other", seen)).toBeNull();
  expect((await queue.leases("dispatcher", shard + 1))[shard]).toEqual({ token: one.token, renewals: 1 });
  const other = await queue.acquire(shard, "dispatcher", "other", { token: one.token, renewals: 1 });
  expect(other).not.toBeNull();
  expect(await queue.renew(one)).toBe(false);
  expect(await queue.pull(one, PULL)).toBe(FENCED);
  // The former owner's state, seen before, does not take the lease from the new owner.
  expect(await queue.acquire(shard, "dispatcher", "third", { token: one.token, renewals: 1 })).toBeNull();
});

test("a release is announced, and calls under the released lease are refused", async () => {
  const shard = nextShard();
  const heard: string[] = [];
  const stop = queue.onRelease((role, released) => heard.push(`${role} ${released}`));
  const lease = await acquire(shard, "recorder");
  await queue.release(lease);
  await eventually("the release is heard", async () => heard.includes(`recorder ${shard}`));
  stop();
  expect(await queue.renew(lease)).toBe(false);
  expect((await queue.leases("recorder", shard + 1))[shard]).toBeNull();
});

test("counts the heartbeats of the processes in a role, and drops one that looks dead as it was seen", async () => {
  expect(await queue.heartbeat("recorder", "one")).toEqual(new Map([["one", 1]]));
  await queue.heartbeat("recorder", "two");
  expect(await queue.heartbeat("recorder", "one")).toEqual(
    new Map([
      ["one", 2],
      ["two", 1],
    ]),
  );
  await queue.heartbeat("recorder", "two");
  await queue.resign("recorder", "two", 1);
  expect((await queue.heartbeat("recorder", "one")).get("two")).toBe(2);
  await queue.resign("recorder", "two", 2);
  expect((await queue.heartbeat("recorder", "one")).has("two")).toBe(false);
  await queue.resign("recorder", "one");
});
