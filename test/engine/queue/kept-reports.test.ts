import { describe, expect, test } from "bun:test";
import type { EventType } from "../../../src/domain/jobs/event.ts";
import type { QueuedJob } from "../../../src/domain/jobs/job.ts";
import type { Observation, Settlement } from "../../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import { JobNotes } from "../../../src/engine/dispatch/job-notes.ts";
import { purged } from "../../../src/engine/dispatch/steered-jobs.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { QuietTelemetry } from "../../support/quiet-telemetry.ts";
import { PULL } from "./queue-pulls.ts";
import {
  accept,
  acquire,
  failed,
  first,
  newJob,
  pullOne,
  queue,
  record,
  redis,
  sent,
  useQueueWorld,
  world,
} from "./queue-world.ts";

useQueueWorld();

function report(jobId: string, type: EventType, result = {}): Observation {
  return { jobId, type, result, suppress: null, known: null };
}

function retry(job: QueuedJob, delayMs = 3_600_000): Settlement {
  return { kind: "retry", job, delayMs, status: "running" };
}

/** A wait that costs the job no attempt. */
function wait(job: QueuedJob): Settlement {
  return { kind: "retry", job, delayMs: 0, status: "running", isUncounted: true };
}

function givenUp(job: QueuedJob): Settlement {
  const result = { error: "gave up" };
  return { kind: "final", job, status: "failed", result, event: { type: "failed", result }, isGivenUp: true };
}

async function readTypes(tenant: TenantRef, jobId: string): Promise<readonly EventType[]> {
  return (await queue.job(tenant, jobId))?.events.map(({ type }) => type) ?? [];
}

/** A job of this tenant, pulled by its owner. */
async function inHand() {
  const around = await world();
  const jobId = await accept(around.tenant);
  return { ...around, jobId, job: first(await pullOne(around.lease, "acme")) };
}

test("a person's open and click come after a machine's, and nobody's come twice", async () => {
  const { tenant, lease, jobId, job } = await inHand();
  const machine = { machine: true, by: "Barracuda" };
  const url = 'https://x.test/?q=","machine":true';
  const told: readonly (readonly [EventType, JsonObject, string])[] = [
    ["opened", machine, "kept"],
    ["opened", { machine: true, by: "Mimecast" }, "duplicate"],
    ["opened", { by: "Gmail" }, "kept"],
    ["opened", machine, "duplicate"],
    ["clicked", { url, ...machine }, "kept"],
    ["clicked", { url, machine: true }, "duplicate"],
    ["clicked", { url, by: "Gmail" }, "kept"],
    ["clicked", { url }, "duplicate"],
    ["clicked", { url, ...machine }, "duplicate"],
    ["clicked", { url: `${url}&more` }, "kept"],
  ];
  for (const [type, result, answer] of told)
    expect(await queue.observe(tenant, report(jobId, type, result))).toBe(answer as "kept");
  await queue.settle(lease, [sent(job)]);
  for (const [type, result] of told) expect(await queue.observe(tenant, report(jobId, type, result))).toBe("duplicate");
  const events = (await queue.job(tenant, jobId))?.events.map(({ type, result }) => [type, result]);
  expect(events).toEqual([
    ["sent", {}],
    ...told.filter(([, , answer]) => answer === "kept").map(([type, result]) => [type, result]),
  ]);
});

test("a settlement tells which jobs a report ended with success, so that nobody counts them as failed", async () => {
  const { tenant, lease, jobId, job } = await inHand();
  await queue.observe(tenant, report(jobId, "delivered"));
  expect(await queue.settle(lease, [givenUp(job)])).toEqual(new Set([jobId]));
  expect(await queue.settle(lease, [givenUp(job)])).toBe("settled");
  const other = await inHand();
  expect(await queue.settle(other.lease, [givenUp(other.job)])).toBe("settled");

  const counts: unknown[] = [];
  const telemetry = Object.assign(new QuietTelemetry(), {
    count: (name: string, labels: unknown) => void counts.push([name, labels]),
  });
  const notes = new JobNotes({ clock: systemClock, telemetry, logShare: 0 });
  notes.landed([givenUp(job), givenUp(other.job)], new Set([jobId]));
  notes.landed([purged(job)], new Set());
  notes.landed([givenUp({ ...job, retriedAtMs: 1 })], new Set());
  notes.stop();
  expect(counts).toEqual([
    ["messages", { channel: "email", outcome: "sent" }],
    ["messages", { channel: "email", outcome: "failed" }],
    ["message_failures", { channel: "email", cause: "no_clear_answer" }],
    ["messages", { channel: "email", outcome: "purged" }],
    ["message_failures", { channel: "email", cause: "purged" }],
    ["messages", { channel: "email", outcome: "failed_again" }],
    ["message_failures", { channel: "email", cause: "no_clear_answer" }],
  ]);
});

describe("a report on a job that waits for a retry", () => {
  test("ends it with success, `sent` first, and it is never handed out again", async () => {
    const { tenant, lease, recorder, prefix, jobId, job } = await inHand();
    await queue.settle(lease, [retry(job, 0)]);
    expect(await queue.observe(tenant, report(jobId, "delivered", { at: 1 }))).toBe("recorded");
    const ended = await queue.job(tenant, jobId);
    expect(ended).toMatchObject({ status: "success", attempts: 1, result: {} });
    expect(ended?.events.map(({ type, result }) => [type, result])).toEqual([
      ["sent", {}],
      ["delivered", { at: 1 }],
    ]);
    expect(await queue.pull(lease, { ...PULL, survey: true })).toMatchObject({ ready: [], nextDueMs: null });
    expect(await pullOne(lease, "acme")).toEqual([]);
    expect(await redis.client.exists(`${prefix}:parked`, `${prefix}:later`)).toBe(0);
    const rows = (await record(recorder, null))?.rows.map(({ type, finished }) => [type, finished]);
    expect(rows).toEqual([
      ["sent", { status: "success", attempts: 1, result: {}, recipient: "ann@example.com" }],
      ["delivered", null],
    ]);
  });

  test("of type `sent` ends it with that one event", async () => {
    const { tenant, lease, jobId, job } = await inHand();
    await queue.settle(lease, [retry(job)]);
    expect(await queue.observe(tenant, report(jobId, "sent"))).toBe("recorded");
    expect(await queue.observe(tenant, report(jobId, "sent"))).toBe("duplicate");
    expect(await readTypes(tenant, jobId)).toEqual(["sent"]);
  });

  test("says that it failed at the provider: the job was handed over nevertheless", async () => {
    const { tenant, lease, jobId, job } = await inHand();
    await queue.settle(lease, [retry(job)]);
    await queue.observe(tenant, report(jobId, "failed", { error: "unknown number" }));
    expect((await queue.job(tenant, jobId))?.status).toBe("success");
    expect(await readTypes(tenant, jobId)).toEqual(["sent", "failed"]);
  });

  test("that comes twice, or after a repeat of the settlement, changes nothing", async () => {
    const { tenant, lease, recorder, jobId, job } = await inHand();
    await queue.settle(lease, [retry(job)]);
    await queue.observe(tenant, report(jobId, "read"));
    const ended = await queue.job(tenant, jobId);
    await queue.settle(lease, [retry(job)]);
    await queue.settle(lease, [sent(job)]);
    expect(await queue.observe(tenant, report(jobId, "read"))).toBe("duplicate");
    expect(await queue.job(tenant, jobId)).toEqual(ended);
    expect((await record(recorder, null))?.rows).toHaveLength(2);
  });

  test("of another tenant changes nothing", async () => {
    const { tenant, lease, jobId, job } = await inHand();
    await queue.settle(lease, [retry(job)]);
    expect(await queue.observe({ ...tenant, tenantId: "other" }, report(jobId, "read"))).toBe("unknown");
    expect((await queue.job(tenant, jobId))?.status).toBe("running");
  });
});

describe("a report on a job that is being delivered", () => {
  test("waits unseen, and becomes an event right after the end, one per type, in order of arrival", async () => {
    const { tenant, lease, recorder, jobId, job } = await inHand();
    for (const type of ["read", "sent", "delivered"] as const) {
      expect(await queue.observe(tenant, report(jobId, type, { said: type }))).toBe("kept");
      expect(await queue.observe(tenant, report(jobId, type, { said: "again" }))).toBe("duplicate");
    }
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "running", events: [], result: null });
    await queue.settle(lease, [sent(job)]);
    await queue.settle(lease, [sent(job)]);
    const ended = await queue.job(tenant, jobId);
    expect(ended).toMatchObject({ status: "success", attempts: 1, result: {} });
    expect(ended?.events.map(({ type, result }) => [type, result])).toEqual([
      ["sent", {}],
      ["read", { said: "read" }],
      ["delivered", { said: "delivered" }],
    ]);
    const ids = ended?.events.map(({ eventId }) => eventId) ?? [];
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    const rows = (await record(recorder, null))?.rows.map(({ type, eventId, finished }) => [type, eventId, finished]);
    expect<unknown>(rows).toEqual([
      ["sent", ids[0], { status: "success", attempts: 1, result: {}, recipient: "ann@example.com" }],
      ["read", ids[1], null],
      ["delivered", ids[2], null],
    ]);
    for (const type of ["sent", "delivered", "read"] as const) {
      expect(await queue.observe(tenant, report(jobId, type))).toBe("duplicate");
    }
  });

  test("survives the process: whoever settles the job next records it", async () => {
    const { tenant, lease, jobId } = await inHand();
    await queue.observe(tenant, report(jobId, "delivered"));
    await queue.release(lease);
    const next = await acquire(tenant.shard, "dispatcher");
    const again = first(await pullOne(next, "acme"));
    expect(again).toMatchObject({ jobId, attempts: 0, isReported: true, suppressed: null });
    await queue.settle(next, [wait(again)]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 1 });
    expect(await readTypes(tenant, jobId)).toEqual(["sent", "delivered"]);
  });

  test("turns a retry, or a job that is given up, into a success", async () => {
    for (const end of [retry, givenUp]) {
      const { tenant, lease, prefix, jobId, job } = await inHand();
      await queue.observe(tenant, report(jobId, "delivered"));
      await queue.settle(lease, [end(job)]);
      expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 1, result: {} });
      expect(await readTypes(tenant, jobId)).toEqual(["sent", "delivered"]);
      expect(await redis.client.exists(`${prefix}:parked`, `${prefix}:box:acme/e`, `${prefix}:failed:${jobId}`)).toBe(
        0,
      );
    }
  });

  test("joins the history of a failed job, without a second `failed`", async () => {
    const { tenant, lease, jobId, job } = await inHand();
    await queue.observe(tenant, report(jobId, "sent"));
    await queue.observe(tenant, report(jobId, "failed", { error: "theirs" }));
    await queue.settle(lease, [failed(job)]);
    const ended = await queue.job(tenant, jobId);
    expect(ended).toMatchObject({ status: "failed", result: { error: "refused" } });
    expect(await readTypes(tenant, jobId)).toEqual(["failed", "sent"]);
  });

  test("suppresses its recipient at once, if it says so", async () => {
    const { tenant, lease, jobId } = await inHand();
    const suppress = { recipient: "ann@example.com", reason: "bounced" } as const;
    expect(await queue.observe(tenant, { ...report(jobId, "bounced"), suppress })).toBe("kept");
    const other = await accept(tenant);
    const jobs = await pullOne(lease, "acme");
    expect(jobs.find((one) => one.jobId === other)?.suppressed).toBe("bounced");
  });
});

describe("a report on a job that is back in its tenant queue", () => {
  test("keeps it from being handed out again", async () => {
    const { tenant, lease, jobId, job } = await inHand();
    await queue.settle(lease, [retry(job, 0)]);
    await queue.pull(lease, PULL);
    expect(await queue.observe(tenant, report(jobId, "delivered"))).toBe("kept");
    expect(first(await pullOne(lease, "acme"))).toMatchObject({ jobId, attempts: 1, isReported: true });
  });

  test("does so even if its recipient has been suppressed since", async () => {
    const { tenant, lease, prefix, jobId, job } = await inHand();
    await queue.settle(lease, [retry(job, 0)]);
    await queue.pull(lease, PULL);
    await queue.observe(tenant, report(jobId, "delivered"));
    await redis.client.hset(`${prefix}:suppressed:acme`, "ann@example.com", "manual");
    expect(first(await pullOne(lease, "acme"))).toMatchObject({ suppressed: null, isReported: true });
  });
});

describe("a reader's report, which a gateway makes too that follows links while it refuses the message,", () => {
  const click = (jobId: string, url = "https://a.test") => report(jobId, "clicked", { url });

  test("leaves a job that waits for a retry as it is, and joins its history at its end", async () => {
    const { tenant, lease, recorder, jobId, job } = await inHand();
    await queue.settle(lease, [retry(job, 0)]);
    expect(await queue.observe(tenant, click(jobId))).toBe("kept");
    expect(await queue.observe(tenant, click(jobId))).toBe("duplicate");
    expect(await queue.observe(tenant, report(jobId, "opened"))).toBe("kept");
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "running", events: [] });
    await queue.pull(lease, PULL);
    const again = first(await pullOne(lease, "acme"));
    expect(again).toMatchObject({ jobId, attempts: 1 });
    expect(again).not.toHaveProperty("isReported");
    await queue.settle(lease, [sent(again)]);
    expect(await readTypes(tenant, jobId)).toEqual(["sent", "clicked", "opened"]);
    expect((await record(recorder, null))?.rows.map(({ type }) => type)).toEqual(["sent", "clicked", "opened"]);
  });

  test("made during a try that is refused, does not end the job, and is not lost by the retry", async () => {
    const { tenant, lease, jobId, job } = await inHand();
    await queue.observe(tenant, click(jobId));
    expect(await queue.settle(lease, [retry(job, 0)])).toBe("settled");
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "running", attempts: 1, events: [] });
    await queue.pull(lease, PULL);
    const again = first(await pullOne(lease, "acme"));
    expect(await queue.settle(lease, [givenUp(again)])).toBe("settled");
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "failed", attempts: 2 });
    expect(await readTypes(tenant, jobId)).toEqual(["failed", "clicked"]);
  });

  test("does not end a job that is lent, and does not keep one from being handed out again after a crash", async () => {
    const { tenant, lease, jobId, job } = await inHand();
    await queue.observe(tenant, click(jobId));
    await queue.settle(lease, [{ kind: "lend", job, forMs: 0 }]);
    expect(await queue.observe(tenant, report(jobId, "opened"))).toBe("kept");
    expect((await queue.job(tenant, jobId))?.status).toBe("running");
    await queue.pull(lease, PULL);
    const again = first(await pullOne(lease, "acme"));
    expect(again).not.toHaveProperty("isReported");
    await queue.settle(lease, [sent(again)]);
    expect(await readTypes(tenant, jobId)).toEqual(["sent", "clicked", "opened"]);
  });

  test("joins the history in its place when the relay's own report ends the job that waits", async () => {
    const { tenant, lease, recorder, prefix, jobId, job } = await inHand();
    await queue.settle(lease, [retry(job)]);
    await queue.observe(tenant, click(jobId));
    await queue.observe(tenant, click(jobId, "https://b.test"));
    expect(await queue.observe(tenant, report(jobId, "delivered"))).toBe("recorded");
    const types = ["sent", "clicked", "clicked", "delivered"] as const;
    expect(await readTypes(tenant, jobId)).toEqual([...types]);
    expect((await record(recorder, null))?.rows.map(({ type }) => type)).toEqual([...types]);
    const bucket = `${prefix}:jobs:${jobId.slice(0, 8)}${jobId.slice(9, 12)}`;
    expect(await redis.client.hget(bucket, jobId.slice(12))).not.toContain("\n!");
    expect(await queue.observe(tenant, click(jobId))).toBe("duplicate");
  });
});

test("a report on a job that was never handed out waits, and the job is sent as usual", async () => {
  const { tenant, lease } = await world();
  const jobId = await accept(tenant);
  expect(await queue.observe(tenant, report(jobId, "delivered"))).toBe("kept");
  const job = first(await pullOne(lease, "acme"));
  expect(job.isReported).toBeUndefined();
  await queue.settle(lease, [sent(job)]);
  expect(await readTypes(tenant, jobId)).toEqual(["sent", "delivered"]);
});

describe("snoozes", () => {
  test("cost no attempt, and are settled once each", async () => {
    const { tenant, lease, prefix, jobId } = await inHand();
    let job = first(await pullOne(lease, "acme"));
    for (let waits = 1; waits <= 3; waits += 1) {
      const before = job;
      await queue.settle(lease, [wait(job)]);
      await queue.pull(lease, PULL);
      job = first(await pullOne(lease, "acme"));
      expect(job).toMatchObject({ jobId, attempts: 0, waits });
      // A late repeat does not change the next one.
      await queue.settle(lease, [wait(before)]);
      expect(await redis.client.exists(`${prefix}:parked`)).toBe(0);
    }
    await queue.settle(lease, [retry(job, 0)]);
    await queue.pull(lease, PULL);
    const tried = first(await pullOne(lease, "acme"));
    expect(tried).toMatchObject({ attempts: 1, waits: 3, payload: job.payload, recipient: job.recipient });
    await queue.settle(lease, [sent(tried)]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 2 });
  });

  test("count from zero for jobs that were queued and parked before snoozes existed", async () => {
    const { tenant, lease, prefix } = await world();
    const jobId = await accept(tenant);
    const field = jobId.slice(12);
    const bucket = `${prefix}:jobs:${jobId.slice(0, 8)}${jobId.slice(9, 12)}`;
    await redis.client.del(`${prefix}:box:acme/e`);
    await redis.client.hset(bucket, field, "acme er2");
    await redis.client.xadd(`${prefix}:box:acme/e`, "*", "p", `${jobId} e2 ann@example.com\n{}`);
    const job = first(await pullOne(lease, "acme"));
    expect(job.waits).toBeUndefined();
    await queue.settle(lease, [wait(job)]);
    expect(await redis.client.hget(bucket, field)).toBe("acme er2+1");
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "running", attempts: 2 });
  });
});

test("a request that was counted before is queued whatever its window says, and is not counted again", async () => {
  const { tenant } = await world();
  const none = { limit: 0, remaining: 0, resetSeconds: 0 };
  expect((await queue.admit(tenant, 1)).limited).toBe(false);
  const idempotency = { key: "k", fingerprint: "f" };
  const accepted = await queue.accept(tenant, null, newJob({ idempotency }));
  expect(accepted).toMatchObject({ kind: "accepted", rate: none });
  expect(await queue.accept(tenant, null, newJob({ idempotency }))).toMatchObject({ kind: "replayed", rate: none });
  const other = { key: "k", fingerprint: "g" };
  expect(await queue.accept(tenant, null, newJob({ idempotency: other }))).toMatchObject({ kind: "conflict" });
  // Accepted in one call with counted requests.
  const together = [null, 2, null, 2].map((limit) => queue.accept(tenant, limit, newJob()));
  const kinds = (await Promise.all(together)).map(({ kind }) => kind);
  expect(kinds).toEqual(["accepted", "accepted", "accepted", "limited"]);
});
