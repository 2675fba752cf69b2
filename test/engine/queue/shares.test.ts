import { expect, test } from "bun:test";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { NewJob, Settlement } from "../../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import { PULL } from "./queue-pulls.ts";
import {
  accept,
  failed,
  first,
  newJob,
  PER_MINUTE,
  pullOne,
  queue,
  redis,
  sent,
  useQueueWorld,
  world,
} from "./queue-world.ts";

useQueueWorld();

const PAYLOAD = '{"é":1}';
const BYTES = Buffer.byteLength(PAYLOAD);

function retry(job: QueuedJob): Settlement {
  return { kind: "retry", job, delayMs: 0, status: "running" };
}

function ask(tenant: TenantRef, quota: NewJob["quota"] & object, overrides: Partial<NewJob> = {}) {
  return queue.accept(tenant, PER_MINUTE, newJob({ payload: PAYLOAD, quota, ...overrides }));
}

/** "<jobs> <bytes>"; the rest belongs to the rate window. */
async function readLoad(prefix: string): Promise<string | undefined> {
  return (await redis.client.hget(`${prefix}:tenants`, "acme"))?.split(" ").slice(0, 2).join(" ");
}

test("a tenant has no more unfinished jobs than its share, and room again once one ends", async () => {
  const { tenant, lease, prefix } = await world();
  const quota = { jobs: 2, bytes: 1_000_000 };
  const answers = await Promise.all([ask(tenant, quota), ask(tenant, quota), ask(tenant, quota)]);
  expect(answers.map(({ kind }) => kind)).toEqual(["accepted", "accepted", "queue_full"]);
  expect(answers[2]).toMatchObject({ what: "jobs" });
  expect(await readLoad(prefix)).toBe(`2 ${2 * BYTES}`);
  const jobs = await pullOne(lease, "acme");
  await queue.settle(lease, [sent(first(jobs))]);
  await queue.settle(lease, [sent(first(jobs))]);
  expect(await readLoad(prefix)).toBe(`1 ${BYTES}`);
  expect(await ask(tenant, quota)).toMatchObject({ kind: "accepted" });
});

test("a tenant's payloads take no more bytes than its share, wherever they wait", async () => {
  const { tenant, prefix } = await world();
  const quota = { jobs: 100, bytes: 500_000 };
  const stored = { sha256: "ab".repeat(32), bytes: 499_000 };
  expect(await ask(tenant, quota, { payload: "", stored })).toMatchObject({ kind: "accepted" });
  const large = JSON.stringify("x".repeat(1_000));
  expect(await ask(tenant, quota, { payload: large })).toMatchObject({ kind: "queue_full", what: "bytes" });
  expect(await ask(tenant, quota)).toMatchObject({ kind: "accepted" });
  expect(await readLoad(prefix)).toBe(`2 ${499_000 + BYTES}`);
});

test("a refusal counts in the rate window, queues nothing, and leaves its idempotency key free", async () => {
  const { tenant, prefix } = await world();
  const idempotency = { key: "order 7", fingerprint: "aa" };
  const full = await queue.accept(tenant, 10, newJob({ quota: { jobs: 0, bytes: 0 }, idempotency }));
  expect(full).toMatchObject({ kind: "queue_full", what: "jobs", rate: { remaining: 9 } });
  expect(await redis.client.exists(`${prefix}:box:acme/e`)).toBe(0);
  expect(await readLoad(prefix)).toBe("0 0");
  const again = await queue.accept(tenant, 10, newJob({ quota: { jobs: 1, bytes: 1_000 }, idempotency }));
  expect(again).toMatchObject({ kind: "accepted", rate: { remaining: 8 } });
  const replayed = await queue.accept(tenant, 10, newJob({ quota: { jobs: 1, bytes: 1_000 }, idempotency }));
  expect(replayed.kind).toBe("replayed");
});

test("each job counts once, whichever way it takes: retried, lent, reported on, failed, or sent again late", async () => {
  const { tenant, lease, prefix } = await world();
  const ids = [];
  for (let i = 0; i < 4; i += 1) ids.push(await accept(tenant, { payload: PAYLOAD }));
  await queue.settle(lease, (await pullOne(lease, "acme")).map(retry));
  expect(await readLoad(prefix)).toBe(`4 ${4 * BYTES}`);
  await queue.pull(lease, PULL);
  const jobs = await pullOne(lease, "acme");
  const [one, two, three] = [first(jobs), first(jobs.slice(1)), first(jobs.slice(2))];
  await queue.settle(lease, [{ kind: "lend", job: one, forMs: 60_000 }, failed(two), retry(three)]);
  expect(await readLoad(prefix)).toBe(`3 ${3 * BYTES}`);
  await queue.settleLent(lease, [sent(one)]);
  await queue.settleLent(lease, [sent(one)]);
  expect(await readLoad(prefix)).toBe(`2 ${2 * BYTES}`);
  const report = { jobId: three.jobId, type: "delivered", result: {}, suppress: null, known: null } as const;
  expect(await queue.observe(tenant, report)).toBe("recorded");
  await queue.settle(lease, [sent(three), failed(two)]);
  expect(await readLoad(prefix)).toBe(`1 ${BYTES}`);
  await queue.settle(lease, [sent(first(jobs.slice(3)))]);
  expect(await readLoad(prefix)).toBe("0 0");
});

test("a stored payload is handed out by name, also after a retry", async () => {
  const { tenant, lease } = await world();
  const stored = { sha256: "0f".repeat(32), bytes: 300_000 };
  await accept(tenant, { payload: "", stored });
  await accept(tenant, { payload: "", stored, template: 'a "b"' });
  const jobs = await pullOne(lease, "acme");
  expect(jobs).toMatchObject([
    { payload: "", stored },
    { payload: "", stored, template: 'a "b"' },
  ]);
  expect(first(jobs).template).toBeUndefined();
  await queue.settle(lease, jobs.map(retry));
  await queue.pull(lease, PULL);
  // Jobs due in the same millisecond come back in the order of their ids, which are random.
  const listNames = (some: readonly QueuedJob[]) =>
    some
      .map(({ jobId, stored, template }) => ({ jobId, stored, template }))
      .toSorted((x, y) => (x.jobId < y.jobId ? -1 : 1));
  expect(listNames(await pullOne(lease, "acme"))).toEqual(listNames(jobs));
});
