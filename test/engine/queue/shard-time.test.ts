import { expect, test } from "bun:test";
import { FENCED, type Lease, type PullResult } from "../../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import { PULL } from "./queue-pulls.ts";
import { accept, first, newJob, pullOne, queue, redis, stepClock, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const HOUR_MS = 3_600_000;

async function pull(
  lease: Lease,
  shardTimeMs: number | null,
  confirmedSkewMs: number | null = null,
): Promise<PullResult> {
  const result = await queue.pull(lease, { ...PULL, shardTimeMs, confirmedSkewMs });
  if (result === FENCED) throw new Error("fenced");
  return result;
}

async function parkedFor(delayMs: number) {
  const around = await world();
  await accept(around.tenant);
  const job = first(await pullOne(around.lease, "acme"));
  const reckonedMs = (await pull(around.lease, null)).shardTimeMs;
  await queue.settle(around.lease, [{ kind: "retry", job, delayMs, status: "running" }]);
  return { ...around, reckonedMs };
}

test("a clock that is set back delays no retry", async () => {
  const { lease, prefix, reckonedMs } = await parkedFor(10_000);
  await stepClock(prefix, -HOUR_MS);
  const result = await pull(lease, reckonedMs);
  expect(result.nextDueMs).toBeLessThanOrEqual(20_000);
  expect(result.nextDueMs).toBeGreaterThan(5_000);
  expect(await pull(lease, reckonedMs + 30_000)).toMatchObject({ ready: [{ tenantId: "acme" }] });
});

test("a clock that is set forward brings no retry early", async () => {
  const { lease, prefix, reckonedMs } = await parkedFor(10_000);
  await stepClock(prefix, HOUR_MS);
  const result = await pull(lease, reckonedMs);
  expect(result.ready).toEqual([]);
  expect(result.nextDueMs).toBeGreaterThan(5_000);
  expect(Math.abs(result.shardTimeMs - reckonedMs)).toBeLessThan(1);
});

test("the duration of calls moves no time, and an owner without an estimate takes the time as it is", async () => {
  const { lease, prefix } = await world();
  const { shardTimeMs } = await pull(lease, null);
  await pull(lease, shardTimeMs);
  expect((await redis.client.get(`${prefix}:skew`))?.split(" ")[0]).toBe("0");
  expect(Math.abs(shardTimeMs - Date.now())).toBeLessThan(2_000);
});

test("a job parked after a clock step is due by its owner's estimate", async () => {
  for (const byMs of [HOUR_MS, -HOUR_MS]) {
    const { lease, tenant, prefix } = await world();
    await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    const { shardTimeMs } = await pull(lease, null);
    await stepClock(prefix, byMs);
    await queue.settle(lease, [{ kind: "retry", job, delayMs: 10_000, status: "running" }], shardTimeMs + 2_000);
    expect(await redis.client.zscore(`${prefix}:later`, job.jobId)).toBe(String(shardTimeMs + 12_000));
  }
});

test("a job parked late is due by the time agreed on since", async () => {
  const { lease, tenant, prefix } = await world();
  await accept(tenant);
  const job = first(await pullOne(lease, "acme"));
  const { shardTimeMs } = await pull(lease, null);
  await pull(lease, shardTimeMs + 5_000);
  await queue.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "running" }], shardTimeMs);
  expect(await redis.client.zscore(`${prefix}:later`, job.jobId)).toBe(String(shardTimeMs + 5_000));
});

test("an owner without an estimate continues from the last pull when the clock was set back since", async () => {
  const { lease, prefix } = await world();
  const { shardTimeMs } = await pull(lease, null);
  await stepClock(prefix, -HOUR_MS);
  expect((await pull(lease, null)).shardTimeMs).toBe(shardTimeMs);
  expect((await pull(lease, shardTimeMs)).shardTimeMs - shardTimeMs).toBeLessThan(2_000);
});

test("a late pull sets no time back", async () => {
  const { lease, prefix } = await world();
  const { shardTimeMs } = await pull(lease, null);
  await pull(lease, shardTimeMs + HOUR_MS);
  expect((await pull(lease, shardTimeMs + 10_000)).shardTimeMs).toBeGreaterThanOrEqual(shardTimeMs + HOUR_MS);
  expect((await redis.client.get(`${prefix}:skew`))?.startsWith("0 ")).toBe(false);
});

test("a late pull after a clock step does not make the step the shard's time", async () => {
  const { lease, prefix, reckonedMs } = await parkedFor(10_000);
  await pull(lease, reckonedMs + 3_000);
  await stepClock(prefix, HOUR_MS);
  expect((await pull(lease, reckonedMs)).ready).toEqual([]);
  const result = await pull(lease, reckonedMs + 5_000);
  expect(result.ready).toEqual([]);
  expect(Math.abs(result.shardTimeMs - reckonedMs - 5_000)).toBeLessThan(1_001);
});

test("a pull that was long on its way brings nothing early that is scheduled behind it", async () => {
  const { lease, prefix, tenant } = await world();
  const { shardTimeMs } = await pull(lease, null);
  // To the scripts it is the same whether ten seconds pass or the clock is set forward by as much.
  await stepClock(prefix, 10_000);
  expect(await pull(lease, shardTimeMs)).toMatchObject({ shardTimeMs });
  const dueMs = await dueInAnHour(prefix, tenant);
  expect(dueMs - shardTimeMs - HOUR_MS).toBeGreaterThanOrEqual(10_000);
  // Its answer came late, too, so the owner confirms no skew.
  expect(await pull(lease, shardTimeMs + 10_000)).toMatchObject({ estimatedSkewMs: null });
  expect((await dueInAnHour(prefix, tenant)) - dueMs).toBeLessThan(2_000);
});

test("a clock that was set forward delays nothing that is scheduled once the shard's owner knows", async () => {
  const { lease, prefix, tenant } = await world();
  const { shardTimeMs } = await pull(lease, null);
  await stepClock(prefix, HOUR_MS);
  const { estimatedSkewMs } = await pull(lease, shardTimeMs);
  expect(await pull(lease, shardTimeMs + 250, estimatedSkewMs)).toMatchObject({ estimatedSkewMs: null });
  expect((await dueInAnHour(prefix, tenant)) - shardTimeMs - HOUR_MS).toBeLessThan(2_000);
});

/** Accepts a job that is due in an hour. Returns when it is due by the shard's time. */
async function dueInAnHour(prefix: string, tenant: TenantRef): Promise<number> {
  const job = newJob({ dueMs: Date.now() + HOUR_MS });
  await queue.accept(tenant, null, job);
  return Number(await redis.client.zscore(`${prefix}:later`, job.jobId));
}
