import { beforeEach, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { ChannelLetters } from "../../../src/engine/queue/codec.ts";
import type { RedisConnection } from "../../../src/engine/queue/connection.ts";
import { Acceptor } from "../../../src/engine/queue/verbs/accept.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { accept, first, newJob, pullOne, queue, record, redis, sent, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

type Call = () => Promise<unknown>;

/** The sent calls; each can be sent again, as by a network that held it back. */
let calls: Call[];
/** Whether the next call arrives but its answer is lost. */
let losesAnswer: boolean;

/** A real connection, all of whose calls can come again. */
function acceptor(): Acceptor {
  const evalsha = async (...args: Parameters<RedisConnection["evalsha"]>) => {
    const sentArgs = [...args] as typeof args;
    calls.push(() => redis.client.evalsha(...sentArgs));
    const reply = await redis.client.evalsha(...args);
    if (!losesAnswer) return reply;
    losesAnswer = false;
    throw new Error("Command timed out");
  };
  // The acceptor uses no other member of a connection.
  return new Acceptor({ evalsha } as unknown as RedisConnection, systemClock, "all", {
    letters: new ChannelLetters(CHANNELS),
  });
}

beforeEach(async () => {
  calls = [];
  losesAnswer = true;
  // The script is known from here on: a call is one command.
  const { tenant } = await world("known");
  await accept(tenant);
});

test("a call whose answer was lost is repeated without queueing or counting twice", async () => {
  const { tenant, prefix } = await world();
  const job = newJob();
  const answer = await acceptor().submit({ tenant, requestsPerMinute: 100, job });
  expect(answer).toMatchObject({ kind: "accepted", jobId: job.jobId, rate: { remaining: 99 } });
  expect(calls).toHaveLength(2);
  expect(await redis.client.xlen(`${prefix}:box:acme/e`)).toBe(1);
});

test("a try that arrives after its own repeat does nothing, even if its job has been sent and recorded", async () => {
  const { tenant, lease, recorder, prefix } = await world();
  await acceptor().submit({ tenant, requestsPerMinute: 100, job: newJob() });
  const [former] = calls;
  expect(await former?.()).toEqual([]);
  expect(await redis.client.xlen(`${prefix}:box:acme/e`)).toBe(1);
  await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
  await record(recorder, await record(recorder, null));
  expect(await former?.()).toEqual([]);
  expect(await redis.client.exists(`${prefix}:box:acme/e`)).toBe(0);
  expect((await queue.admit(tenant, 100)).rate.remaining).toBe(100 - 1 - 1);
});

test("a job that a repeat refused is not queued by a late try", async () => {
  const { tenant, prefix } = await world();
  const quota = { jobs: 1, bytes: 1_000_000 };
  const submitted = newJob({ quota });
  // The first try is held back, and the free space is used up meanwhile.
  const held: Call[] = [];
  let isHeld = true;
  const evalsha = (...args: Parameters<RedisConnection["evalsha"]>) => {
    if (!isHeld) return redis.client.evalsha(...args);
    isHeld = false;
    const sentArgs = [...args] as typeof args;
    held.push(() => redis.client.evalsha(...sentArgs));
    return accept(tenant).then(() => Promise.reject(new Error("Command timed out")));
  };
  const front = new Acceptor({ evalsha } as unknown as RedisConnection, systemClock, "all", {
    letters: new ChannelLetters(CHANNELS),
  });
  const answer = await front.submit({ tenant, requestsPerMinute: 100, job: submitted });
  expect(answer).toMatchObject({ kind: "queue_full", what: "jobs" });
  expect(await held[0]?.()).toEqual([]);
  expect(await redis.client.xlen(`${prefix}:box:acme/e`)).toBe(1);
});
