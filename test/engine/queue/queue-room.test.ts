import { afterEach, describe, expect, test } from "bun:test";
import { TransportError } from "../../../src/domain/errors.ts";
import { idInBatch } from "../../../src/domain/ids.ts";
import type { AcceptResult } from "../../../src/domain/jobs/queue.ts";
import type { RedisMemory } from "../../../src/domain/jobs/queue-depth.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import { QueueRoom } from "../../../src/engine/queue/queue-room.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { jobIds, newJob, PER_MINUTE, queue, redis, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const MIB = 1024 * 1024;
/** More than any Redis here has. */
const PLAN = { jobs: 1_000_000, bytes: 1024 * MIB };

function ask(tenant: TenantRef, bytes = 2): Promise<AcceptResult> {
  return queue.accept(tenant, PER_MINUTE, newJob({ payload: "x".repeat(bytes), quota: PLAN }));
}

function answers(what: string, tenant: TenantRef, kind: AcceptResult["kind"]) {
  return eventually(what, async () => {
    const answer = await ask(tenant);
    return answer.kind === kind ? answer : null;
  });
}

test("a tenant that fills Redis up leaves room for the others, and has its whole share again when there is plenty", async () => {
  const { tenant: greedy } = await world("greedy");
  const { tenant: modest } = await world("modest");
  for (let i = 0; i < 80; i += 1) expect((await ask(greedy, 250 * 1024)).kind).toBe("accepted");
  const used = Number(/used_memory:(\d+)/.exec(await redis.client.info("memory"))?.[1]);
  await redis.client.config("SET", "maxmemory", Math.floor(used / 0.85));

  expect(await answers("the greedy one is refused", greedy, "queue_full")).toMatchObject({ what: "bytes" });
  expect((await ask(modest)).kind).toBe("accepted");
  expect((await ask(greedy)).kind).toBe("queue_full");

  await redis.client.config("SET", "maxmemory", 20 * used);
  await answers("the greedy one is accepted again", greedy, "accepted");
}, 90_000);

const HOUR_MS = 60 * 60 * 1000;
const LEAST = 16 * MIB;

/** Makes Redis nearly full, and waits until the queue has seen it. */
async function fillUp(): Promise<void> {
  const used = Number(/used_memory:(\d+)/.exec(await redis.client.info("memory"))?.[1]);
  // An eighth of it is less than the least share.
  await redis.client.config("SET", "maxmemory", Math.floor(used / 0.9));
  const { tenant, prefix } = await world("crowded");
  await redis.client.hset(`${prefix}:claims:crowded`, hourAgo(0), LEAST);
  let n = 0;
  await eventually("the queue knows that Redis is filling up", async () => {
    n += 1;
    return (await askUnder(tenant, `look ${n}`)).kind === "queue_full";
  });
}

function askUnder(tenant: TenantRef, key: string): Promise<AcceptResult> {
  return queue.accept(tenant, PER_MINUTE, newJob({ quota: PLAN, idempotency: { key, fingerprint: "f".repeat(43) } }));
}

const hourAgo = (hours: number) => Math.floor(Date.now() / HOUR_MS) - hours;
/** Of all hours: a test may run over the end of one. */
async function claimedBytes(key: string): Promise<number> {
  return (await redis.client.hvals(key)).reduce((sum, bytes) => sum + Number(bytes), 0);
}

describe("idempotency keys", () => {
  afterEach(() => redis.client.config("SET", "maxmemory", 0));

  test("are counted as what they take in Redis, each once", async () => {
    const { tenant, prefix } = await world("counting");
    const taken: number[] = [];
    for (const key of ["order 7", "x".repeat(255)]) {
      for (let repeat = 0; repeat < 3; repeat += 1) await askUnder(tenant, key);
      const name = `${prefix}:idem:counting:${key}`;
      // MEMORY USAGE leaves out the entry among the keys that expire: 24 bytes, and 8 of a bucket.
      taken.push(Number(await redis.client.memory("USAGE", name)) + 32);
    }
    const sum = taken.reduce((all, each) => all + each, 0);
    const counted = await claimedBytes(`${prefix}:claims:counting`);
    expect(counted / sum).toBeGreaterThan(0.8);
    expect(counted / sum).toBeLessThan(1.25);
    await ask(tenant);
    expect(await claimedBytes(`${prefix}:claims:counting`)).toBe(counted);
    const lifeMs = await redis.client.pttl(`${prefix}:claims:counting`);
    expect(lifeMs).toBeGreaterThan(25 * HOUR_MS);
  });

  test("of a tenant that has its part of a nearly full Redis are refused; others' are not, nor its repeats, nor what has none", async () => {
    const { tenant: greedy, prefix } = await world("greedy");
    const { tenant: modest } = await world("modest");
    expect((await askUnder(greedy, "before")).kind).toBe("accepted");
    await redis.client.hset(`${prefix}:claims:greedy`, hourAgo(3), LEAST);
    expect((await askUnder(greedy, "plenty")).kind).toBe("accepted");
    await fillUp();
    expect(await askUnder(greedy, "another")).toMatchObject({ kind: "queue_full", what: "keys" });
    expect((await askUnder(greedy, "before")).kind).toBe("replayed");
    expect((await ask(greedy)).kind).toBe("accepted");
    expect((await askUnder(modest, "another")).kind).toBe("accepted");
  });

  test("of more than a day ago count no more, and are forgotten", async () => {
    const { tenant, prefix } = await world("yesterday");
    await redis.client.hset(`${prefix}:claims:yesterday`, hourAgo(30), LEAST, hourAgo(26), LEAST);
    await fillUp();
    expect((await askUnder(tenant, "today")).kind).toBe("accepted");
    expect(await claimedBytes(`${prefix}:claims:yesterday`)).toBeLessThan(1_000);
  });

  test("of a batch count once, and a batch that has begun is queued to its end", async () => {
    const { tenant, prefix } = await world("batches");
    const baseId = jobIds.nextBatch();
    const piece = (key: string, index: number) => ({
      key: { key, fingerprint: "f".repeat(43), baseId, run: jobIds.next() },
      items: [{ index, job: newJob({ jobId: idInBatch(baseId, index), quota: PLAN }) }],
      isFirstCounted: false,
    });
    const queued = async (key: string, index: number) => {
      const result = await queue.acceptPiece(tenant, PER_MINUTE, piece(key, index));
      return result.kind === "answered" ? result.answers[0] : null;
    };
    expect(await queued("batch", 0)).toMatchObject({ kind: "accepted" });
    const counted = await claimedBytes(`${prefix}:claims:batches`);
    expect(counted).toBeGreaterThan(400);
    await redis.client.hset(`${prefix}:claims:batches`, hourAgo(2), LEAST);
    await fillUp();
    expect(await queued("batch", 1)).toMatchObject({ kind: "accepted" });
    expect(await claimedBytes(`${prefix}:claims:batches`)).toBe(LEAST + counted);
    expect(await queued("another batch", 2)).toMatchObject({ kind: "queue_full", what: "keys" });
  });

  test("of a batch count with the refusals that are kept for its repeats", async () => {
    const { tenant, prefix } = await world("refused");
    const baseId = jobIds.nextBatch();
    // Bytes that gzip cannot shorten.
    const refused = JSON.stringify([[1, crypto.getRandomValues(Buffer.alloc(30_000)).toString("base64")]]);
    await queue.endBatch(tenant, baseId, refused);
    const taken = Number(await redis.client.memory("USAGE", `${prefix}:batch:${baseId}:refused`));
    const counted = await claimedBytes(`${prefix}:claims:refused`);
    expect(counted).toBeGreaterThan(30_000);
    expect(counted / taken).toBeGreaterThan(0.7);
    expect(await redis.client.pttl(`${prefix}:claims:refused`)).toBeGreaterThan(25 * HOUR_MS);
  });
});

/** A room whose memory the test sets. */
function makeRoom(memory: RedisMemory | Error) {
  const clock = new VirtualClock();
  const telemetry = new QuietTelemetry();
  const at = { memory, looks: 0 };
  const room = new QueueRoom({
    clock,
    telemetry,
    memory: async () => {
      at.looks += 1;
      if (at.memory instanceof Error) throw at.memory;
      return at.memory;
    },
  });
  /** The rest of the plan's share once a look has been answered. */
  const later = async () => {
    await clock.advance(1_000);
    room.within(PLAN);
    await new Promise((resolve) => setImmediate(resolve));
    return room.within(PLAN);
  };
  return { room, clock, telemetry, at, later };
}

test("a share is narrowed from four fifths of the memory on, to an eighth of it", async () => {
  const { at, later } = makeRoom({ usedBytes: 799 * MIB, maxBytes: 1_000 * MIB });
  expect(await later()).toEqual(PLAN);
  at.memory = { usedBytes: 800 * MIB, maxBytes: 1_000 * MIB };
  expect(await later()).toEqual({ bytes: 125 * MIB, jobs: 125 * 1024 });
});

test("a plan's share that is smaller stays, and so does one without a bound", async () => {
  const { room, later } = makeRoom({ usedBytes: 999 * MIB, maxBytes: 1_000 * MIB });
  await later();
  expect(room.within({ jobs: 7, bytes: 8 })).toEqual({ jobs: 7, bytes: 8 });
  expect(room.within(undefined)).toBeUndefined();
});

test("a small Redis grants 16 MiB, and one of unknown size everything", async () => {
  const { at, later } = makeRoom({ usedBytes: 64 * MIB, maxBytes: 64 * MIB });
  expect(await later()).toEqual({ bytes: 16 * MIB, jobs: 16 * 1024 });
  at.memory = { usedBytes: 64 * MIB, maxBytes: null };
  expect(await later()).toEqual(PLAN);
});

test("what is known stays while Redis does not answer", async () => {
  const { at, later } = makeRoom({ usedBytes: 64 * MIB, maxBytes: 64 * MIB });
  const narrowed = await later();
  at.memory = new TransportError("the queue did not answer");
  expect(await later()).toEqual(narrowed);
  at.memory = { usedBytes: 1 * MIB, maxBytes: 64 * MIB };
  expect(await later()).toEqual(PLAN);
});

test("the memory is looked at once a second, however many ask, and only its changes are logged", async () => {
  const { room, clock, telemetry, at, later } = makeRoom({ usedBytes: 64 * MIB, maxBytes: 64 * MIB });
  await later();
  expect(at.looks).toBe(1);
  await clock.advance(999);
  for (let i = 0; i < 10; i += 1) room.within(PLAN);
  expect(at.looks).toBe(1);
  await later();
  expect(at.looks).toBe(2);
  at.memory = { usedBytes: 1 * MIB, maxBytes: 64 * MIB };
  await later();
  await later();
  expect(telemetry.lines).toEqual([
    "warn: redis is filling up: no tenant queues more than its part",
    "info: redis has room again",
  ]);
});
