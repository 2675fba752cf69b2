import { expect, test } from "bun:test";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import { FENCED, type Settlement } from "../../../src/domain/jobs/queue.ts";
import { recipientIndex } from "../../../src/storage/recipient-index.ts";
import { measureRedisUse } from "../../guard/redis-use.ts";
import { accept, first, pullOne, queue, redis, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const ANN = "ann@example.com";
const index = recipientIndex(new Uint8Array(32).fill(7));
const NOTHING = { suppressed: null };

async function aPulledJob() {
  const at = await world();
  await accept(at.tenant);
  return { ...at, job: first(await pullOne(at.lease, "acme")) };
}

test("a pulled job's recipient who is suppressed meanwhile is found, with the reason, until that is taken back", async () => {
  const { tenant, lease, job } = await aPulledJob();
  expect(await queue.lookAgain(lease, job)).toEqual(NOTHING);
  await queue.putSuppression({ ...tenant, tenantId: "beta" }, ANN, "manual");
  expect(await queue.lookAgain(lease, job)).toEqual(NOTHING);
  await queue.putSuppression(tenant, ANN, "unsubscribed");
  expect(await queue.lookAgain(lease, job)).toEqual({ suppressed: "unsubscribed" });
  await queue.removeSuppression(tenant, ANN);
  expect(await queue.lookAgain(lease, job)).toEqual(NOTHING);
});

test("a pulled job's recipient who is erased meanwhile is found, also while Redis is full", async () => {
  const { tenant, lease, job } = await aPulledJob();
  await queue.eraseJobs(tenant, ANN);
  await redis.client.config("SET", "maxmemory", "1");
  try {
    expect(await queue.lookAgain(lease, job)).toEqual({ suppressed: "erased" });
  } finally {
    await redis.client.config("SET", "maxmemory", "0");
  }
  // Jobs that are sent later are not included.
  await accept(tenant);
  const [, later] = await pullOne(lease, "acme");
  expect(later && (await queue.lookAgain(lease, later))).toEqual(NOTHING);
});

test("a pulled job's recipient who is put on the list under an erased name meanwhile is found", async () => {
  const { tenant, lease, job } = await aPulledJob();
  await queue.putSuppression(tenant, "sha:", index.erasedNamesKey("acme"));
  expect(await queue.lookAgain(lease, job)).toEqual(NOTHING);
  await queue.putSuppression(tenant, index.erasedName("acme", ANN), "complained");
  expect(await queue.lookAgain(lease, job)).toEqual({ suppressed: "complained" });
});

test("a pulled job that its provider reports meanwhile is found, whoever is suppressed", async () => {
  const { tenant, lease, job } = await aPulledJob();
  const retry: Settlement = { kind: "retry", job, delayMs: 0, status: "running" };
  await queue.settle(lease, [retry]);
  await pullOne(lease, "nobody");
  const again: QueuedJob = first(await pullOne(lease, "acme"));
  const suppress = { recipient: ANN, reason: "complained" } as const;
  await queue.observe(tenant, { jobId: job.jobId, type: "complained", result: {}, suppress, known: null });
  expect(await queue.lookAgain(lease, again)).toEqual({ suppressed: null, isReported: true });
});

test("only the owner is told", async () => {
  const { lease, job } = await aPulledJob();
  await queue.release(lease);
  expect(await queue.lookAgain(lease, job)).toBe(FENCED);
});

test("jobs that are looked up at one time share calls, and a tenant's list is read once in each", async () => {
  const { tenant, lease } = await world();
  for (let n = 0; n < 50; n += 1) await accept(tenant);
  await queue.putSuppression(tenant, "bob@example.com", "manual");
  const jobs = await pullOne(lease, "acme");
  // The first call loads the script.
  await queue.lookAgain(lease, first(jobs));
  const { scripts, commands } = await measureRedisUse(redis.client, () =>
    Promise.all(jobs.map((job) => queue.lookAgain(lease, job))),
  );
  // Two go out alone, all others behind them.
  expect(scripts).toBe(3);
  // Per job: the lease, the record and the recipient; per tenant: whether there is a list, and the erasures.
  expect(commands).toBe(3 * 50 + 2 * scripts);
});
