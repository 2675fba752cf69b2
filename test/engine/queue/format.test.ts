import { beforeEach, describe, expect, test } from "bun:test";
import { ConfigurationError } from "../../../src/domain/errors.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { Meta, QUEUE_FORMAT } from "../../../src/engine/queue/format.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { PULL } from "./queue-pulls.ts";
import { ACME_MAIL, accept, acquire, pullOne, queue, record, redis, sent, useQueueWorld } from "./queue-world.ts";

useQueueWorld();

const P = "wb:{s00}";
const TENANT = { tenantId: "acme", shard: 0 } as const;
/** Jobs of one bucket, as the former release wrote them: queued, parked, failed, sent and recorded, sent and not recorded. */
const BUCKET = "019bbef3b00";
const [QUEUED, PARKED, FAILED, RECORDED, UNRECORDED] = ["1", "2", "3", "4", "5"].map(
  (digit) => `019bbef3-b00${digit}-7000-8000-00000000000${digit}`,
) as [string, string, string, string, string];

async function writeFormerFormat(): Promise<void> {
  const { client } = redis;
  const field = (jobId: string) => jobId.slice(12);
  await client.xadd(`${P}:box:acme/e`, "1767000000000-0", "p", `${QUEUED} e0 ann@example.com\t"welcome"\n{"a":1}`);
  await client.sadd(`${P}:ready`, "acme/e");
  await client.zadd(`${P}:later`, 1_767_000_000_000, PARKED);
  await client.hset(`${P}:parked`, PARKED, `acme/e ${PARKED} e2+1 bob@example.com\n{"b":2}`);
  await client.hset(`${P}:jobs:${BUCKET}`, {
    [field(QUEUED)]: "acme ep0 1767000000000-0",
    [field(PARKED)]: "acme er2+1",
    [field(FAILED)]: 'acme ef1\nf123456 {"error":"refused"}\n={"error":"refused"}',
    [field(RECORDED)]: "acme es1\ns123457",
    [field(UNRECORDED)]: "acme es1\ns999999",
    r: "2",
  });
  await client.pexpire(`${P}:jobs:${BUCKET}`, 900_000);
  await client.set(`${P}:failed:${FAILED}`, `${FAILED} e1 ann@example.com\n{"secret":"payload"}`, "PX", 1_000_000);
  await client.set(`${P}:repeated:${QUEUED}`, "1", "PX", 600_000);
  await client.rpush(`${P}:closing`, BUCKET);
  const row = `["acme","${UNRECORDED}","e",999999,"s",{},"s",1,{}]`;
  await client.xadd(`${P}:outbox`, "*", "c", "1", "r", row);
  await client.set(`${P}:clock`, "999999");
  await client.hset(`${P}:lease:dispatcher`, { owner: "former", token: "7-aa" });
  await client.set(`${P}:epoch`, "7");
  await client.zadd("wb:{members}:dispatcher", 1_767_000_000_000, "former");
}

let meta: Meta;

beforeEach(async () => {
  meta = new Meta(redis.client, new QuietTelemetry());
  await redis.client.flushall();
});

describe("the queue's format", () => {
  test("a new queue gets this release's format, however many processes start at once", async () => {
    await Promise.all([meta.openFormat("refuse"), meta.openFormat("migrate"), meta.openFormat("refuse")]);
    expect(await meta.read()).toEqual({ format: String(QUEUE_FORMAT) });
    await accept(TENANT);
    await meta.openFormat("refuse");
  });

  test("an unknown format is left alone, with a one-line message", async () => {
    await redis.client.hset("wb:{meta}", "format", String(QUEUE_FORMAT + 1));
    const refused = await meta.openFormat("migrate").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ConfigurationError);
    expect((refused as ConfigurationError).problems).toHaveLength(1);
    expect(String(refused)).toContain(`format ${QUEUE_FORMAT + 1}`);
  });

  test("a former release's queue is refused, and left untouched, when others may be using it", async () => {
    await writeFormerFormat();
    const before = (await redis.client.keys("*")).toSorted();
    const refused = await meta.openFormat("refuse").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ConfigurationError);
    expect(String(refused)).toContain("npm start -- migrate");
    expect((await redis.client.keys("*")).toSorted()).toEqual(before);
  });

  test("everything that the former release wrote survives the migration and goes on", async () => {
    await writeFormerFormat();
    await meta.openFormat("migrate");
    await meta.openFormat("refuse");
    const lease = await acquire(0, "dispatcher");
    expect(lease.token).toStartWith("8-");
    expect(await queue.pull(lease, PULL)).toMatchObject({ ready: [ACME_MAIL], nextDueMs: null });
    const fresh = await accept(TENANT);
    const jobs = await pullOne(lease, "acme");
    expect(jobs.map(({ jobId }) => jobId)).toEqual([QUEUED, PARKED, fresh]);
    expect(jobs).toMatchObject([
      { attempts: 0, template: "welcome", payload: '{"a":1}' },
      { attempts: 2, waits: 1, recipient: "bob@example.com", payload: '{"b":2}' },
      { attempts: 0 },
    ]);
    await queue.settle(lease, jobs.map(sent));
    for (const id of [QUEUED, PARKED, fresh]) expect((await queue.job(TENANT, id))?.status).toBe("success");
    expect(await queue.job(TENANT, FAILED)).toMatchObject({ status: "failed", result: { error: "refused" } });
    expect(await redis.client.hget(`${P}:tenants`, "acme")).toStartWith("0 0 ");
  });

  test("loads and rate windows of the second format are merged, and finished jobs are not noted again", async () => {
    const { client } = redis;
    await client.hset("wb:{meta}", "format", "2");
    await client.hset(`${P}:load`, { "": "15400000000000", acme: "3 900", quiet: "1 20" });
    await client.hset(`${P}:rate`, { acme: "100 7 130 2", idle: "90 1 90 1" });
    await client.hset(`${P}:jobs:${BUCKET}`, RECORDED.slice(12), "acme es1\ns123457");
    await expect(meta.openFormat("refuse")).rejects.toBeInstanceOf(ConfigurationError);
    await meta.openFormat("migrate");
    expect(await client.hgetall(`${P}:tenants`)).toEqual({
      "": "15400000000000",
      acme: "3 900 100 7 130 2",
      quiet: "1 20 0 0 0 0",
      idle: "0 0 90 1 90 1",
    });
    expect(await client.exists(`${P}:load`, `${P}:rate`, `${P}:leaving`)).toBe(0);
  });

  test("payloads of failed jobs are gone, and finished jobs leave, recorded ones first", async () => {
    await writeFormerFormat();
    await meta.openFormat("migrate");
    expect(await redis.client.exists(`${P}:failed:${FAILED}`, `${P}:repeated:${QUEUED}`, `${P}:closing`)).toBe(0);
    expect(await redis.client.pttl(`${P}:jobs:${BUCKET}`)).toBe(-1);
    const recorder = await acquire(0, "recorder");
    await redis.client.set(`${P}:skew`, engineLimits.jobKeptMs + 1_000);
    const batch = await record(recorder, null);
    for (const id of [FAILED, RECORDED]) expect(await queue.job(TENANT, id)).toBeNull();
    for (const id of [QUEUED, PARKED, UNRECORDED]) expect(await queue.job(TENANT, id)).not.toBeNull();
    await record(recorder, batch);
    await redis.client.set(`${P}:skew`, 3 * engineLimits.jobKeptMs);
    await record(recorder, null);
    expect(await queue.job(TENANT, UNRECORDED)).toBeNull();
    for (const id of [QUEUED, PARKED]) expect(await queue.job(TENANT, id)).not.toBeNull();
  });

  test("an interrupted migration is repeated", async () => {
    await writeFormerFormat();
    await meta.openFormat("migrate");
    await redis.client.hdel("wb:{meta}", "format");
    await meta.openFormat("migrate");
    expect(await meta.read()).toEqual({ format: String(QUEUE_FORMAT) });
    const recorder = await acquire(0, "recorder");
    await record(recorder, await record(recorder, null));
    await redis.client.set(`${P}:skew`, engineLimits.jobKeptMs + 1_000);
    await record(recorder, null);
    expect(await redis.client.hkeys(`${P}:jobs:${BUCKET}`)).toHaveLength(2);
  });
});

test("a queue that was emptied at work gets its marker back, and another format keeps its own", async () => {
  await accept(TENANT);
  await redis.client.del("wb:{meta}");
  await expect(meta.openFormat("refuse")).rejects.toThrow("format 1");
  await meta.openFormat("unmarked");
  expect(await meta.read()).toEqual({ format: String(QUEUE_FORMAT) });
  await meta.set("format", "2");
  await expect(meta.openFormat("unmarked")).rejects.toThrow("format 2");
});

test("the first process to write an identity decides it for all", async () => {
  expect(await meta.claim("registry", "one")).toBe("one");
  expect(await meta.claim("registry", "two")).toBe("one");
  expect(await meta.read()).toEqual({ registry: "one" });
});

test("a queue has one id, and only that queue's mark grows, also while Redis is full", async () => {
  expect(await meta.name("one")).toBe("one");
  expect(await meta.name("two")).toBe("one");
  await redis.client.config("SET", "maxmemory", "1");
  try {
    expect(await meta.mark("one", 2, { registry_mark: 1 })).toBe(2);
    expect(await meta.mark("one", 1, { registry_mark: 0 })).toBe(3);
    expect(await meta.mark("two", 1, { registry_mark: 9 })).toBeNull();
  } finally {
    await redis.client.config("SET", "maxmemory", "0");
  }
  expect(await meta.read()).toEqual({ queue: "one", mark: "3", registry_mark: "1" });
});
