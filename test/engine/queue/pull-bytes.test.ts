import { expect, test } from "bun:test";
import { FENCED, type Lease, type PullResult, type TenantQueuePull } from "../../../src/domain/jobs/queue.ts";
import { PULL, ROOM } from "./queue-pulls.ts";
import { accept, first, pullOne, queue, redis, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const MIB = 1024 * 1024;

async function pull(lease: Lease, tenantQueues: readonly TenantQueuePull[], bytesMax: number): Promise<PullResult> {
  const result = await queue.pull(lease, { ...PULL, tenantQueues, bytesMax });
  if (result === FENCED) throw new Error("fenced");
  return result;
}

function pullFrom(tenantId: string, bytesMax = ROOM, after: string | null = null): TenantQueuePull {
  return { tenantQueue: { tenantId, channel: "email" }, after, entriesMax: 64, bytesMax };
}

function sumBytes({ tenantQueues }: PullResult): number {
  return tenantQueues.flatMap(({ jobs }) => jobs).reduce((sum, { payload }) => sum + payload.length, 0);
}

test("a pull returns no more bytes than requested, however many tenant queues are full of large entries", async () => {
  const { tenant, lease } = await world();
  const tenants = Array.from({ length: 14 }, (_, i) => ({ ...tenant, tenantId: `large-${i}` }));
  const payload = JSON.stringify("x".repeat(200 * 1024));
  for (const each of tenants) for (let i = 0; i < 8; i += 1) await accept(each, { payload });
  const result = await pull(
    lease,
    tenants.map(({ tenantId }) => pullFrom(tenantId)),
    MIB,
  );
  expect(sumBytes(result)).toBeLessThanOrEqual(MIB);
  expect(sumBytes(result)).toBeGreaterThan(MIB / 2);
  // Tenants whose jobs exceeded the budget are marked, and their jobs are kept: the next call gets them.
  expect(result.tenantQueues.map(({ more }) => more)).toEqual(tenants.map(() => true));
  let pulled = 0;
  const after = new Map<string, string>();
  for (let calls = 0; pulled < 14 * 8 && calls < 60; calls += 1) {
    const asked = tenants.map(({ tenantId }) => pullFrom(tenantId, ROOM, after.get(tenantId) ?? null));
    for (const { tenantQueue, jobs } of (await pull(lease, asked, MIB)).tenantQueues) {
      pulled += jobs.length;
      const last = jobs.at(-1)?.entryId;
      if (last !== undefined) after.set(tenantQueue.tenantId, last);
    }
  }
  expect(pulled).toBe(14 * 8);
});

test("an entry larger than the call is handed out alone", async () => {
  const { tenant, lease } = await world();
  const payload = JSON.stringify("x".repeat(2 * MIB));
  const [large] = [await accept(tenant, { payload }), await accept(tenant)];
  const result = await pull(lease, [pullFrom("acme")], MIB);
  expect(result.tenantQueues[0]?.jobs.map(({ jobId }) => jobId)).toEqual([large]);
  expect(result.tenantQueues[0]?.more).toBe(true);
});

test("each tenant queue has its own bytes: beyond them only its first entry is handed out", async () => {
  const { tenant, lease } = await world();
  const payload = JSON.stringify("x".repeat(1_000));
  for (let i = 0; i < 8; i += 1) await accept(tenant, { payload });
  expect((await pull(lease, [pullFrom("acme", 3_500)], MIB)).tenantQueues[0]?.jobs).toHaveLength(3);
  expect((await pull(lease, [pullFrom("acme", 10)], MIB)).tenantQueues[0]?.jobs).toHaveLength(1);
});

test("an emptied tenant queue says so, even when its last job filled the request", async () => {
  const { tenant, lease } = await world();
  await accept(tenant);
  const one = await pull(lease, [{ ...pullFrom("acme"), entriesMax: 1 }], MIB);
  expect(one.tenantQueues[0]).toMatchObject({ more: false });
  await accept(tenant);
  const again = await pull(lease, [{ ...pullFrom("acme"), entriesMax: 1 }], MIB);
  expect(again.tenantQueues[0]).toMatchObject({ more: true });
});

test("retries that are due together come back within the bytes of a call each", async () => {
  const { tenant, lease } = await world();
  const payload = JSON.stringify("x".repeat(100 * 1024));
  for (let i = 0; i < 40; i += 1) await accept(tenant, { payload });
  const jobs = await pullOne(lease, "acme");
  expect(jobs).toHaveLength(40);
  await queue.settle(
    lease,
    jobs.map((job) => ({ kind: "retry", job, delayMs: 0, status: "running" }) as const),
  );
  const result = await pull(lease, [], MIB);
  expect(result.more).toBe(true);
  expect(await redis.client.hlen(`wb:{s${String(tenant.shard).padStart(2, "0")}}:parked`)).toBe(40 - 11);
  for (let calls = 1; calls < 4; calls += 1) expect((await pull(lease, [], MIB)).more).toBe(calls < 3);
  expect(await pullOne(lease, "acme")).toHaveLength(40);
});

test("entry ids rise, even if the tenant queue was empty in between", async () => {
  const { tenant, lease } = await world();
  await accept(tenant);
  const one = first(await pullOne(lease, "acme"));
  await queue.settle(lease, [
    { kind: "final", job: one, status: "success", result: {}, event: { type: "sent", result: {} } },
  ]);
  await accept(tenant);
  const two = first(await pullOne(lease, "acme", one.entryId));
  expect(Number(two.entryId.split("-")[0])).toBeGreaterThan(Number(one.entryId.split("-")[0]));
});

test("a due retry without a payload holds up nobody", async () => {
  const { tenant, lease, prefix } = await world();
  const jobId = await accept(tenant);
  await redis.client.zadd(`${prefix}:later`, 1, "0199aaaa-0000-7000-8000-000000000000");
  expect(await queue.pull(lease, PULL)).toMatchObject({ ready: [{ tenantId: "acme" }] });
  expect((await pullOne(lease, "acme")).map((job) => job.jobId)).toEqual([jobId]);
});
