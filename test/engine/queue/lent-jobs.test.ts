import { describe, expect, test } from "bun:test";
import { type EventType } from "../../../src/domain/jobs/event.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { FENCED, type Observation, type Settlement } from "../../../src/domain/jobs/queue.ts";
import { PULL } from "./queue-pulls.ts";
import {
  accept,
  acquire,
  failed,
  first,
  pullOne,
  queue,
  record,
  redis,
  sent,
  useQueueWorld,
  world,
} from "./queue-world.ts";

useQueueWorld();

const HOUR_MS = 3_600_000;

function lend(job: QueuedJob, forMs = HOUR_MS): Settlement {
  return { kind: "lend", job, forMs };
}

function retry(job: QueuedJob, delayMs = HOUR_MS): Settlement {
  return { kind: "retry", job, delayMs, status: "running" };
}

function report(jobId: string, type: EventType): Observation {
  return { jobId, type, result: {}, suppress: null, known: null };
}

/** A job whose delivery is in flight while its owner has given up the lease; and the next owner's. */
async function lent(forMs = HOUR_MS) {
  const around = await world();
  const jobId = await accept(around.tenant);
  const job = first(await pullOne(around.lease, "acme"));
  expect(await queue.settle(around.lease, [lend(job, forMs)])).toBe("settled");
  await queue.release(around.lease);
  const next = await acquire(around.tenant.shard, "dispatcher");
  return { ...around, jobId, job, next };
}

describe("a lent job", () => {
  test("is not handed to the next owner, and the delivering process settles it", async () => {
    const { tenant, lease, next, recorder, prefix, jobId, job } = await lent();
    expect(await queue.pull(next, { ...PULL, survey: true })).toMatchObject({ ready: [] });
    expect(await pullOne(next, "acme")).toEqual([]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "running", attempts: 0 });
    expect(await queue.settle(lease, [sent(job)])).toBe(FENCED);
    await queue.settleLent(lease, [sent(job)]);
    await queue.settleLent(lease, [sent(job)]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 1 });
    expect((await record(recorder, null))?.rows).toHaveLength(1);
    expect(await redis.client.exists(`${prefix}:parked`, `${prefix}:later`, `${prefix}:box:acme/e`)).toBe(0);
  });

  test("waits for its retry like any other, once", async () => {
    const { tenant, lease, next, jobId, job } = await lent();
    await queue.settleLent(lease, [retry(job, 0)]);
    await queue.settleLent(lease, [retry(job, HOUR_MS), failed(job)]);
    expect(await queue.pull(next, PULL)).toMatchObject({ nextDueMs: null });
    const again = first(await pullOne(next, "acme"));
    expect(again).toMatchObject({ jobId, attempts: 1, payload: job.payload });
    await queue.settle(next, [sent(again)]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 2 });
  });

  test("comes back when no outcome arrives, and a later outcome changes nothing", async () => {
    const { tenant, lease, next, jobId, job } = await lent(0);
    await queue.pull(next, PULL);
    const again = first(await pullOne(next, "acme"));
    expect(again).toMatchObject({ jobId, attempts: 0, payload: job.payload });
    expect(again.entryId).not.toBe(job.entryId);
    await queue.settleLent(lease, [failed(job)]);
    expect((await queue.job(tenant, jobId))?.status).toBe("running");
    await queue.settle(next, [sent(again)]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 1 });
  });

  test("stays lent where its loan is prolonged, until its outcome; whoever does not have it prolongs nothing", async () => {
    const { tenant, lease, next, prefix, jobId, job } = await lent(0);
    await queue.settleLent(lease, [lend(job)]);
    await queue.settleLent(next, [lend(job, 0)]);
    expect(await queue.pull(next, { ...PULL, survey: true })).toMatchObject({ ready: [] });
    expect(await pullOne(next, "acme")).toEqual([]);
    await Promise.all([queue.settleLent(lease, [sent(job)]), queue.settleLent(lease, [lend(job)])]);
    await queue.settleLent(lease, [lend(job)]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 1 });
    expect(await redis.client.exists(`${prefix}:parked`, `${prefix}:later`, `${prefix}:loans`)).toBe(0);
  });

  test("starts its loan anew for the next owner, whatever Redis' clock did while nobody owned the shard", async () => {
    const { tenant, lease, next, prefix, jobId, job } = await lent();
    const [skewMs = 0, agreedMs = 0] = ((await redis.client.get(`${prefix}:skew`)) ?? "").split(" ").map(Number);
    await redis.client.set(`${prefix}:skew`, `${skewMs + 2 * HOUR_MS} ${agreedMs}`);
    expect(await queue.pull(next, { ...PULL, survey: true })).toMatchObject({ ready: [] });
    expect(await pullOne(next, "acme")).toEqual([]);
    await queue.settleLent(lease, [sent(job)]);
    expect((await queue.job(tenant, jobId))?.status).toBe("success");
    expect(await redis.client.exists(`${prefix}:loans`)).toBe(0);
  });

  test("can be lent again by the next owner, whose settlement alone counts then", async () => {
    const { tenant, lease, next, jobId, job } = await lent(0);
    await queue.pull(next, PULL);
    const again = first(await pullOne(next, "acme"));
    await queue.settle(next, [lend(again)]);
    await queue.settleLent(lease, [failed(job)]);
    expect((await queue.job(tenant, jobId))?.status).toBe("running");
    await queue.settleLent(next, [sent(again)]);
    expect((await queue.job(tenant, jobId))?.status).toBe("success");
  });

  test("ends with success when its provider reports on it, whatever its delivery comes to", async () => {
    const { tenant, lease, jobId, job } = await lent();
    expect(await queue.observe(tenant, report(jobId, "delivered"))).toBe("recorded");
    await queue.settleLent(lease, [failed(job)]);
    const ended = await queue.job(tenant, jobId);
    expect(ended).toMatchObject({ status: "success" });
    expect(ended?.events.map(({ type }) => type)).toEqual(["sent", "delivered"]);
  });

  test("is not handed out again when its provider reports on it after its loan, before anybody reads it", async () => {
    const { tenant, next, jobId } = await lent(0);
    expect(await queue.pull(next, { ...PULL, survey: true })).toMatchObject({ ready: [{ tenantId: "acme" }] });
    expect(await queue.observe(tenant, report(jobId, "delivered"))).toBe("kept");
    const again = first(await pullOne(next, "acme"));
    expect(again).toMatchObject({ jobId, isReported: true });
    await queue.settle(next, [retry(again, 0)]);
    expect((await queue.job(tenant, jobId))?.status).toBe("success");
  });

  test("ends with success instead of being lent when its provider has already reported on it", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    expect(await queue.observe(tenant, report(jobId, "delivered"))).toBe("kept");
    await queue.settle(lease, [lend(job)]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 1 });
  });

  test("counts no attempt that may never have happened when an earlier one is reported", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    await queue.settle(lease, [retry(first(await pullOne(lease, "acme")), 0)]);
    await queue.pull(lease, PULL);
    const again = first(await pullOne(lease, "acme"));
    expect(await queue.observe(tenant, report(jobId, "delivered"))).toBe("kept");
    await queue.settle(lease, [lend(again)]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 1 });
  });

  test("stays pending until its content is checked", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant, { needsScreening: true });
    const job = first(await pullOne(lease, "acme"));
    await queue.settle(lease, [lend(job, 0)]);
    expect((await queue.job(tenant, jobId))?.status).toBe("pending");
    await queue.pull(lease, PULL);
    expect(first(await pullOne(lease, "acme"))).toMatchObject({ jobId, needsScreening: true });
  });

  test("leaves the jobs behind it to the next owner at once", async () => {
    const { tenant, lease } = await world();
    await accept(tenant);
    const waiting = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await queue.settle(lease, [lend(job)]);
    await queue.release(lease);
    const next = await acquire(tenant.shard, "dispatcher");
    expect((await pullOne(next, "acme")).map(({ jobId }) => jobId)).toEqual([waiting]);
  });
});
