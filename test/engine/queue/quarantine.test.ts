import { afterAll, beforeAll, expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { FENCED } from "../../../src/domain/jobs/queue.ts";
import type { Labels, Telemetry } from "../../../src/domain/telemetry.ts";
import { RedisQueue } from "../../../src/engine/queue/redis-queue.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { PULL, ROOM } from "./queue-pulls.ts";
import {
  ACME_MAIL,
  accept,
  first,
  jobIds,
  pullOne,
  queue,
  record,
  redis,
  sent,
  useQueueWorld,
  world,
} from "./queue-world.ts";

useQueueWorld();

/** Counts quarantined data. */
class Counting implements Telemetry {
  readonly counted: string[] = [];
  count(name: string, labels: Labels = {}): void {
    if (name === "quarantined") this.counted.push(Object.values(labels).join());
  }
  gauge(): void {}
  time(): void {}
  log(): void {}
}

const telemetry = new Counting();
let watched: RedisQueue;

beforeAll(async () => {
  const address = { kind: "socket", path: redis.path } as const;
  watched = new RedisQueue({ channels: CHANNELS, address, clock: systemClock, random: systemRandom, telemetry });
  await watched.start();
});

afterAll(() => watched.stop());

function kept(prefix: string): Promise<string[]> {
  return redis.client.lrange(`${prefix}:quarantine`, 0, -1);
}

test("an unreadable entry leaves its tenant queue, and its neighbours are handed out", async () => {
  const { tenant, lease, prefix } = await world();
  const tenantQueue = `${prefix}:box:acme/e`;
  const ids = [await accept(tenant)];
  // Not an entry, one without its field, and one whose template is no JSON text: only its reader finds that.
  await redis.client.xadd(tenantQueue, "*", "p", "garbage\nwith secrets");
  await redis.client.xadd(tenantQueue, "*", "q", "x");
  await redis.client.xadd(tenantQueue, "*", "p", `${jobIds.next()} e0 ann@example.com\t"a\\u00zz"\n{}`);
  const tenantQueues = [{ tenantQueue: ACME_MAIL, after: null, entriesMax: 64, bytesMax: ROOM }];
  telemetry.counted.length = 0;
  const result = await watched.pull(lease, { ...PULL, tenantQueues });
  if (result === FENCED) throw new Error("fenced");
  expect(result.tenantQueues[0]?.jobs.map(({ jobId }) => jobId)).toEqual(ids);
  expect(telemetry.counted).toEqual(["entry", "entry", "entry"]);
  const texts = await kept(prefix);
  expect(texts).toHaveLength(3);
  expect(texts[2]).toMatch(/^\d+ entry acme\/e \d+-\d+: not a box entry\ngarbage\nwith secrets$/);
  expect(await redis.client.xlen(tenantQueue)).toBe(1);
  await watched.pull(lease, { ...PULL, tenantQueues });
  expect(telemetry.counted).toHaveLength(3);
});

test("an unreadable entry no longer counts in its tenant's share", async () => {
  const { tenant, lease, prefix } = await world();
  await accept(tenant);
  const tenantQueue = `${prefix}:box:acme/e`;
  const [[id = "", [, text = ""]]] = (await redis.client.xrange(tenantQueue, "-", "+")) as [[string, string[]]];
  const load = await redis.client.hget(`${prefix}:tenants`, "acme");
  for (const spoilt of [text.replace(" e0 ", ' e0 \t"a\\u00zz"'), text.replace(" e0 ", " ? ")]) {
    await redis.client.del(tenantQueue);
    await redis.client.xadd(tenantQueue, id, "p", spoilt);
    await redis.client.hset(`${prefix}:tenants`, "acme", load ?? "");
    await watched.pull(lease, {
      ...PULL,
      tenantQueues: [{ tenantQueue: ACME_MAIL, after: null, entriesMax: 64, bytesMax: ROOM }],
    });
    expect(await redis.client.xlen(tenantQueue)).toBe(0);
    expect(await redis.client.hget(`${prefix}:tenants`, "acme")).toStartWith("0 0 ");
  }
});

test("an unreadable parked job no longer counts in its tenant's share", async () => {
  const { tenant, lease, prefix } = await world();
  const load = async () => (await redis.client.hget(`${prefix}:tenants`, "acme"))?.split(" ").slice(0, 2).join(" ");
  const parked = async () => {
    await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await queue.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "running" }]);
    return job.jobId;
  };
  const record = (jobId: string) =>
    [`${prefix}:jobs:${jobId.slice(0, 8)}${jobId.slice(9, 12)}`, jobId.slice(12)] as const;
  const spoilt: readonly ((jobId: string) => Promise<unknown>)[] = [
    (jobId) => redis.client.hset(`${prefix}:parked`, jobId, "garbage"),
    (jobId) => redis.client.hset(`${prefix}:parked`, jobId, "acme/e garbage"),
    (jobId) => redis.client.hdel(`${prefix}:parked`, jobId),
    async (jobId) => {
      await redis.client.hset(`${prefix}:parked`, jobId, "acme/e garbage");
      await redis.client.hset(...record(jobId), "garbage");
    },
  ];
  for (const spoil of spoilt) {
    await spoil(await parked());
    expect(await load()).toStartWith("1 ");
    await watched.pull(lease, PULL);
    expect(await load()).toBe("0 0");
  }
  // A job that has ended does not lower the counts of others.
  await accept(tenant);
  const before = await load();
  await redis.client.zadd(`${prefix}:later`, 1, jobIds.next());
  const ended = await parked();
  await redis.client.hset(`${prefix}:parked`, ended, "garbage");
  await redis.client.hset(...record(ended), "acme es1");
  await redis.client.hset(`${prefix}:tenants`, "acme", `${before} 0 0 0 0`);
  await watched.pull(lease, PULL);
  expect(await load()).toBe(before);
});

test("unreadable names of tenant queues and parked jobs hold up nobody", async () => {
  const { tenant, lease, prefix } = await world();
  await accept(tenant);
  const job = first(await pullOne(lease, "acme"));
  await queue.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "running" }]);
  await redis.client.sadd(`${prefix}:ready`, "no box", "acme/Z");
  const lost = jobIds.next();
  await redis.client.zadd(`${prefix}:later`, 1, lost, 2, jobIds.next());
  await redis.client.hset(`${prefix}:parked`, lost, "garbage");
  telemetry.counted.length = 0;
  expect(await watched.pull(lease, PULL)).toMatchObject({ ready: [ACME_MAIL], nextDueMs: null });
  expect(telemetry.counted.toSorted()).toEqual(["box", "box", "parked", "parked"]);
  expect((await pullOne(lease, "acme")).map(({ jobId }) => jobId)).toEqual([job.jobId]);
});

test("jobs of an unknown channel wait for a process that knows it", async () => {
  const { tenant, lease, prefix } = await world();
  await accept(tenant);
  await redis.client.sadd(`${prefix}:ready`, "acme/z");
  telemetry.counted.length = 0;
  expect(await watched.pull(lease, PULL)).toMatchObject({ ready: [ACME_MAIL] });
  expect(telemetry.counted).toEqual([]);
  // From here on the shard's next owner receives them.
  expect(await redis.client.smembers(`${prefix}:held`)).toContain("acme/z");
});

test("an unreadable row delays neither its batch nor later ones", async () => {
  const { tenant, lease, recorder, prefix } = await world();
  const outbox = `${prefix}:outbox`;
  await redis.client.xadd(outbox, "*", "c", "1", "r", "no json");
  await redis.client.xadd(outbox, "*", "x", "y");
  await accept(tenant);
  await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
  telemetry.counted.length = 0;
  const batch = await record(recorder, null, watched);
  if (batch === null) throw new Error("no batch");
  expect(batch.rows.map(({ type }) => type)).toEqual(["sent"]);
  // The same batch again, as after a crash: the same rows, without a second log line.
  expect(await record(recorder, null, watched)).toEqual(batch);
  expect(telemetry.counted.toSorted()).toEqual(["outbox", "row"]);
  expect(await record(recorder, batch, watched)).toBeNull();
  expect(await redis.client.xlen(outbox)).toBe(0);
});

test("a batch without a readable row is skipped", async () => {
  const { recorder, prefix } = await world();
  await redis.client.xadd(`${prefix}:outbox`, "*", "c", "1", "r", "no json");
  expect(await record(recorder, null)).toBeNull();
  expect(await redis.client.xlen(`${prefix}:outbox`)).toBe(0);
});

test("an unreadable job record does not prevent the settlement", async () => {
  const { tenant, lease, prefix } = await world();
  const jobId = await accept(tenant);
  const job = first(await pullOne(lease, "acme"));
  await redis.client.hset(`${prefix}:jobs:${jobId.slice(0, 8)}${jobId.slice(9, 12)}`, jobId.slice(12), "garbage");
  await queue.settle(lease, [sent(job)]);
  expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 1 });
  expect(await kept(prefix)).toHaveLength(1);
  expect(await redis.client.hget(`${prefix}:tenants`, "acme")).toStartWith("0 0 ");
  await accept(tenant);
});

test("a tenant's unreadable state counts as nothing and is written anew", async () => {
  const { tenant, lease, prefix } = await world();
  await accept(tenant);
  await redis.client.hset(`${prefix}:tenants`, "acme", "garbage");
  await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
  await accept(tenant);
  expect(await redis.client.hget(`${prefix}:tenants`, "acme")).toMatch(/^1 \d+ \d+ 1 \d+ 1$/);
});

test("only the newest thousand are kept", async () => {
  const { lease, prefix } = await world();
  const names = Array.from({ length: 1_200 }, (_, i) => `no box ${i}`);
  await redis.client.sadd(`${prefix}:ready`, ...names);
  for (let calls = 0; calls < 6; calls += 1) await queue.pull(lease, PULL);
  expect(await redis.client.scard(`${prefix}:ready`)).toBe(0);
  expect(await kept(prefix)).toHaveLength(1_000);
});
