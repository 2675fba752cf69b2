import { expect, test } from "bun:test";
import { PULL } from "./queue-pulls.ts";
import { accept, first, pullOne, queue, redis, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const HOUR_MS = 3_600_000;

test("a purge makes the parked jobs of its tenant queues due, and neither lent ones nor others", async () => {
  const { tenant, lease, prefix } = await world();
  const jobIds: string[] = [];
  for (const kind of ["retry", "retry", "lend"] as const) {
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await queue.settle(lease, [
      kind === "lend" ? { kind, job, forMs: HOUR_MS } : { kind, job, delayMs: HOUR_MS, status: "running" },
    ]);
    jobIds.push(jobId);
  }
  const other = { tenantId: "bolt", shard: tenant.shard };
  await accept(other);
  const theirs = first(await pullOne(lease, "bolt"));
  await queue.settle(lease, [{ kind: "retry", job: theirs, delayMs: HOUR_MS, status: "running" }]);
  await accept(tenant);
  expect(await redis.client.zcard(`${prefix}:later`)).toBe(4);

  expect(await queue.hastenParked(tenant, ["whatsapp"])).toBe(0);
  expect(await queue.pull(lease, PULL)).toMatchObject({ ready: [{ tenantId: "acme" }] });
  expect(await redis.client.zcard(`${prefix}:later`)).toBe(4);

  // Two that wait for a retry, one in flight, and one that has not been pulled.
  expect(await queue.hastenParked(tenant, ["email"])).toBe(4);
  await queue.pull(lease, PULL);
  const left = await redis.client.zrange(`${prefix}:later`, "0", "-1");
  expect(left.toSorted()).toEqual([jobIds[2] ?? "", theirs.jobId].toSorted());
  expect((await pullOne(lease, "acme")).map(({ jobId }) => jobId)).toContain(jobIds[0] ?? "");
});

test("a purge looks at a large number of parked jobs in pieces", async () => {
  const { tenant, lease, prefix } = await world();
  const jobs = 700;
  for (let done = 0; done < jobs; done += 50) {
    await Promise.all(Array.from({ length: 50 }, () => accept(tenant)));
    for (let read = 0; read < 50; ) {
      const some = await pullOne(lease, "acme");
      read += some.length;
      await queue.settle(
        lease,
        some.map((job) => ({ kind: "retry", job, delayMs: HOUR_MS, status: "running" }) as const),
      );
    }
  }
  expect(await redis.client.zcard(`${prefix}:later`)).toBe(jobs);
  expect(await queue.hastenParked(tenant, ["email", "wallet"])).toBe(jobs);
  const due = await redis.client.zcount(`${prefix}:later`, "-inf", String(Date.now() + 1_000));
  expect(due).toBe(jobs);
});
