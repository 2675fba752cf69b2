import { expect, test } from "bun:test";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Settlement } from "../../../src/domain/jobs/queue.ts";
import { recipientIndex } from "../../../src/storage/recipient-index.ts";
import { measureRedisUse } from "../../guard/redis-use.ts";
import { accept, first, pullOne, queue, record, redis, sent, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const ANN = "ann@example.com";
const index = recipientIndex(new Uint8Array(32).fill(7));

function suppressed(job: QueuedJob): Settlement {
  const result = { reason: job.suppressed ?? "none" };
  return { kind: "final", job, status: "suppressed", result, event: { type: "suppressed", result } };
}

test("an erased recipient's jobs end as suppressed wherever they wait, others are sent, and the books balance", async () => {
  const at = await world();
  const { tenant, lease } = at;
  const retried = await accept(tenant);
  const job = first(await pullOne(lease, "acme"));
  await queue.settle(lease, [{ kind: "retry", job, delayMs: 3_600_000, status: "running" }]);
  const waits = await accept(tenant);
  const bob = await accept(tenant, { recipient: "bob@example.com" });
  await accept({ ...tenant, tenantId: "beta" });

  expect(await queue.eraseJobs(tenant, ANN)).toEqual({ unfinished: 2, unrecorded: 0, isIncomplete: false });
  expect(await queue.eraseJobs(tenant, ANN)).toEqual({ unfinished: 2, unrecorded: 0, isIncomplete: false });
  // The pull that finds the retry due moves it back; the next one hands it out.
  await pullOne(lease, "nobody");
  const pulled = await pullOne(lease, "acme");
  expect(new Map(pulled.map(({ jobId, suppressed: reason }) => [jobId, reason]))).toEqual(
    new Map([
      [retried, "erased"],
      [waits, "erased"],
      [bob, null],
    ]),
  );
  expect(first(await pullOne(lease, "beta")).suppressed).toBeNull();
  await queue.settle(
    lease,
    pulled.map((each) => (each.suppressed === null ? sent(each) : suppressed(each))),
  );
  expect(await queue.eraseJobs(tenant, ANN)).toEqual({ unfinished: 0, unrecorded: 0, isIncomplete: false });
  expect(await queue.job(tenant, waits)).toMatchObject({ status: "suppressed", result: { reason: "erased" } });
  expect(await redis.client.hget(`${at.prefix}:tenants`, "acme")).toStartWith("0 0 ");

  // The history gets neither the address nor its hash again, and the queue keeps no marks.
  const rows = (await record(at.recorder, null))?.rows ?? [];
  expect(rows.flatMap(({ finished }) => finished?.recipient ?? [])).toEqual(["bob@example.com"]);
  expect(await redis.client.hgetall(`${at.prefix}:suppressed:acme`)).toEqual({});
  expect((await pullOne(lease, "acme")).length).toBe(0);
  const again = await accept(tenant);
  expect(first(await pullOne(lease, "acme"))).toMatchObject({ jobId: again, suppressed: null });
});

/** An erased recipient's job that waits for a retry, with a click that names them. */
async function clickedAndErased() {
  const at = await world();
  const jobId = await accept(at.tenant);
  const job = first(await pullOne(at.lease, "acme"));
  const click = { jobId, type: "clicked", result: { url: "https://a.test/?who=ann%40example.com" } } as const;
  await queue.observe(at.tenant, { ...click, suppress: null, known: null });
  await queue.settle(at.lease, [{ kind: "retry", job, delayMs: 3_600_000, status: "running" }]);
  await queue.eraseJobs(at.tenant, ANN);
  return { at, jobId };
}

test("reports that waited with an erased recipient's job, which may name them, do not enter the history", async () => {
  const { at, jobId } = await clickedAndErased();
  await pullOne(at.lease, "nobody");
  const erased = first(await pullOne(at.lease, "acme"));
  await queue.settle(at.lease, [suppressed(erased)]);
  expect((await queue.job(at.tenant, jobId))?.events.map(({ type }) => type)).toEqual(["suppressed"]);
  expect((await record(at.recorder, null))?.rows.map(({ type }) => type)).toEqual(["suppressed"]);
  const bucket = `${at.prefix}:jobs:${jobId.slice(0, 8)}${jobId.slice(9, 12)}`;
  expect(await redis.client.hget(bucket, jobId.slice(12))).not.toContain("ann");
});

test("a job that is cancelled after its recipient was erased does not name them either", async () => {
  const { at, jobId } = await clickedAndErased();
  expect(await queue.cancel(at.tenant, jobId)).toBe("canceled");
  const rows = (await record(at.recorder, null))?.rows ?? [];
  expect(rows.map(({ type, finished }) => [type, finished?.recipient])).toEqual([["suppressed", undefined]]);
  expect(JSON.stringify(rows)).not.toMatch(/ann(@|%40)/);
});

test("a job that ended and is not recorded yet is reported, and so is one in flight", async () => {
  const at = await world();
  await accept(at.tenant);
  await accept(at.tenant);
  const [ends] = await pullOne(at.lease, "acme");
  if (ends !== undefined) await queue.settle(at.lease, [sent(ends)]);
  expect(await queue.eraseJobs(at.tenant, ANN)).toEqual({ unfinished: 1, unrecorded: 1, isIncomplete: false });
});

test("a recipient is erased while Redis is full, also as a copy of messages to others", async () => {
  const { tenant, lease } = await world();
  const acceptedMs = Date.now();
  await accept(tenant);
  await redis.client.config("SET", "maxmemory", "1");
  try {
    expect(await queue.eraseJobs(tenant, ANN)).toEqual({ unfinished: 1, unrecorded: 0, isIncomplete: false });
  } finally {
    await redis.client.config("SET", "maxmemory", "0");
  }
  expect(first(await pullOne(lease, "acme")).suppressed).toBe("erased");
  expect([...(await queue.suppressedAmong(tenant, [ANN], { acceptedMs, topic: undefined }))]).toEqual([
    [ANN, { reason: "erased" }],
  ]);
  const isErased = (address: string, sinceMs: number) => queue.wasErasedSince(tenant, address, sinceMs);
  expect(await Promise.all([isErased(ANN, acceptedMs), isErased(ANN, Date.now() + 60_000)])).toEqual([true, false]);
  expect(await isErased("somebody-else@example.com", acceptedMs)).toBe(false);
});

test("a recipient on the list under its erased name is suppressed, and nobody else is", async () => {
  const { tenant, lease } = await world();
  await queue.putSuppression(tenant, "sha:", index.erasedNamesKey("acme"));
  await queue.putSuppression(tenant, index.erasedName("acme", ANN), "complained");
  await queue.putSuppression(tenant, index.erasedName("beta", "bob@example.com"), "complained");
  await accept(tenant);
  await accept(tenant, { recipient: "bob@example.com" });
  expect((await pullOne(lease, "acme")).map(({ suppressed: reason }) => reason)).toEqual(["complained", null]);
});

test("pulling jobs of a tenant with a list costs one more command for each tenant queue, and none without a list", async () => {
  const { tenant, lease } = await world();
  for (let n = 0; n < 20; n += 1) await accept(tenant);
  const countCommands = async () => (await measureRedisUse(redis.client, () => pullOne(lease, "acme"))).commands;
  // From the second pull on, each is the same.
  await countCommands();
  const without = await countCommands();
  await queue.putSuppression(tenant, "bob@example.com", "manual");
  const listed = await countCommands();
  // A look-up for each job, as before, and one that checks for erasures.
  expect(listed - without).toBe(21);
  await queue.putSuppression(tenant, "sha:", index.erasedNamesKey("acme"));
  expect((await countCommands()) - listed).toBe(20);
});
