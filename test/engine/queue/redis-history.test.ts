import { describe, expect, test } from "bun:test";
import { firstEventIdAt } from "../../../src/domain/jobs/event.ts";
import type { JobRecord } from "../../../src/domain/jobs/job.ts";
import { FENCED } from "../../../src/domain/jobs/queue.ts";
import { PULL } from "./queue-pulls.ts";
import {
  ACME_MAIL,
  accept,
  acquire,
  failed,
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

describe("settle", () => {
  test("ends a job once: its event, its result, its queue entry", async () => {
    const { tenant, lease, prefix } = await world();
    const jobId = await accept(tenant);
    const before = firstEventIdAt(Date.now() - 5);
    const job = first(await pullOne(lease, "acme"));
    expect(await queue.settle(lease, [sent(job)])).toBe("settled");
    expect(await queue.settle(lease, [sent(job)])).toBe("settled");
    expect(await queue.settle(lease, [failed(job)])).toBe("settled");
    const settled = await queue.job(tenant, jobId);
    expect(settled).toMatchObject({
      status: "success",
      attempts: 1,
      result: {},
      events: [{ type: "sent", result: {} }],
    });
    expect(settled?.events[0]?.eventId).toBeGreaterThanOrEqual(before);
    expect(await redis.client.exists(`${prefix}:box:acme/e`)).toBe(0);
    expect(await redis.client.xlen(`${prefix}:outbox`)).toBe(1);
    expect(await redis.client.sismember(`${prefix}:held`, "acme/e")).toBe(0);
  });

  test("a repeated settlement removes no entry of another job that got the same id", async () => {
    const { tenant, lease, prefix } = await world();
    await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await queue.settle(lease, [sent(job)]);
    // After Redis lost its last writes, an id can come again.
    const other = jobIds.next();
    await redis.client.xadd(`${prefix}:box:acme/e`, job.entryId, "p", `${other} e0 bob@example.com\n{}`);
    await queue.settle(lease, [sent(job)]);
    expect((await pullOne(lease, "acme")).map(({ jobId }) => jobId)).toEqual([other]);
  });

  test("a retry comes back when it is due, with its attempts counted", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    expect(await queue.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "running" }])).toBe("settled");
    expect((await queue.job(tenant, jobId))?.status).toBe("running");
    expect(await queue.pull(lease, PULL)).toMatchObject({
      ready: [ACME_MAIL],
      nextDueMs: null,
    });
    const again = first(await pullOne(lease, "acme"));
    expect(again).toMatchObject({ jobId, attempts: 1, payload: job.payload });
    // A late repeat of the first settlement does not change the second attempt.
    await queue.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "running" }]);
    expect(first(await pullOne(lease, "acme")).jobId).toBe(jobId);
    await queue.settle(lease, [sent(again)]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 2 });
  });

  test("a retry stays away until it is due, and the owner learns when that is", async () => {
    const { tenant, lease } = await world();
    await accept(tenant);
    await queue.pull(lease, PULL);
    await queue.settle(lease, [
      { kind: "retry", job: first(await pullOne(lease, "acme")), delayMs: 60_000, status: "running" },
    ]);
    const result = await queue.pull(lease, { ...PULL, survey: true });
    if (result === FENCED) throw new Error("fenced");
    expect(result.ready).toEqual([]);
    expect(result.nextDueMs).toBeGreaterThan(50_000);
    expect(result.nextDueMs).toBeLessThanOrEqual(60_000);
  });

  test("a retry whose entry Redis forgot counts nothing, so the job that waits elsewhere is not lost", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await queue.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "running" }]);
    // From here on the job is parked with one attempt: later writes are gone, and the owner's answer comes late.
    const forgotten = { ...job, attempts: 1, entryId: "99999999999999-0" };
    await queue.settle(lease, [{ kind: "retry", job: forgotten, delayMs: 0, status: "running" }]);
    await queue.pull(lease, PULL);
    await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 2 });
  });

  test("keeps no payload of a failed job", async () => {
    const { tenant, lease, prefix } = await world();
    const jobId = await accept(tenant, { payload: JSON.stringify("refused content") });
    await queue.settle(lease, [failed(first(await pullOne(lease, "acme")))]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "failed", result: { error: "refused" } });
    for (const key of await redis.client.keys(`${prefix}:*`)) {
      expect((await redis.client.dumpBuffer(key)).includes("refused content")).toBe(false);
    }
  });

  test("an owner without the lease changes nothing", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await queue.release(lease);
    await acquire(tenant.shard, "dispatcher");
    expect(await queue.settle(lease, [sent(job)])).toBe(FENCED);
    expect(await queue.pull(lease, PULL)).toBe(FENCED);
    expect(await queue.renew(lease)).toBe(false);
    expect((await queue.job(tenant, jobId))?.events).toEqual([]);
  });
});

describe("a job whose content is checked first", () => {
  test("is pending until it starts, then running", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant, { needsScreening: true });
    const job = first(await pullOne(lease, "acme"));
    expect(job).toMatchObject({ jobId, attempts: 0, needsScreening: true, recipient: "ann@example.com" });
    expect((await queue.job(tenant, jobId))?.status).toBe("pending");
    await queue.settle(lease, [{ kind: "start", job }]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "running", attempts: 0 });
    await queue.settle(lease, [{ kind: "start", job }, sent(job)]);
    await queue.settle(lease, [{ kind: "start", job }]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "success", attempts: 1 });
  });

  test("stays pending while it cannot be checked, comes again, and can fail without ever running", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant, { needsScreening: true });
    const job = first(await pullOne(lease, "acme"));
    await queue.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "pending" }]);
    expect(await queue.job(tenant, jobId)).toMatchObject({ status: "pending", attempts: 1 });
    await queue.pull(lease, PULL);
    const again = first(await pullOne(lease, "acme"));
    expect(again).toMatchObject({ jobId, attempts: 1, needsScreening: true });
    expect((await queue.job(tenant, jobId))?.status).toBe("pending");
    await queue.settle(lease, [failed(again)]);
    expect((await queue.job(tenant, jobId))?.status).toBe("failed");
  });

  test("does not look pending again after it ran", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant, { needsScreening: true });
    const job = first(await pullOne(lease, "acme"));
    await queue.settle(lease, [{ kind: "start", job }]);
    await queue.settle(lease, [{ kind: "retry", job, delayMs: 0, status: "pending" }]);
    expect((await queue.job(tenant, jobId))?.status).toBe("running");
  });
});

describe("observe", () => {
  test("adds one event per type, and never touches the status", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    const delivered = {
      jobId,
      type: "delivered",
      result: {},
      suppress: null,
      known: null,
    } as const;
    expect(await queue.observe(tenant, delivered)).toBe("recorded");
    expect(await queue.observe(tenant, delivered)).toBe("duplicate");
    const bounced = { ...delivered, type: "bounced", result: { code: 550 } } as const;
    const suppress = { recipient: "ann@example.com", reason: "bounced" } as const;
    expect(await queue.observe(tenant, { ...bounced, suppress })).toBe("recorded");
    const job = await queue.job(tenant, jobId);
    expect(job?.status).toBe("success");
    expect(job?.events.map((event) => event.type)).toEqual(["sent", "delivered", "bounced"]);
    const ids = job?.events.map((event) => event.eventId) ?? [];
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    await accept(tenant);
    expect(first(await pullOne(lease, "acme")).suppressed).toBe("bounced");
  });

  test("clicks count once per link", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    const click = (url: string) =>
      queue.observe(tenant, {
        jobId,
        type: "clicked",
        result: { url },
        suppress: null,
        known: null,
      });
    expect([await click("https://a.test"), await click("https://a.test"), await click("https://b.test")]).toEqual([
      "recorded",
      "duplicate",
      "recorded",
    ]);
  });

  test("a click on each link waits with an unfinished job", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const click = (url: string) =>
      queue.observe(tenant, { jobId, type: "clicked", result: { url }, suppress: null, known: null });
    expect([await click("https://a.test"), await click("https://a.test"), await click("https://b.test")]).toEqual([
      "kept",
      "duplicate",
      "kept",
    ]);
    await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    expect((await queue.job(tenant, jobId))?.events.map(({ result }) => result)).toEqual([
      {},
      { url: "https://a.test" },
      { url: "https://b.test" },
    ]);
  });

  test("a job takes a few hundred clicks, whoever follows more links, and other reports after them", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    const report = { jobId, suppress: null, known: null } as const;
    const click = (i: number) =>
      queue.observe(tenant, { ...report, type: "clicked", result: { url: `https://a.test/${"x".repeat(480)}/${i}` } });
    const answers = await Promise.all(Array.from({ length: 400 }, (_, i) => click(i)));
    const events = (await queue.job(tenant, jobId))?.events ?? [];
    const clicks = events.filter(({ type }) => type === "clicked").length;
    expect(clicks).toBe(answers.filter((answer) => answer === "recorded").length);
    expect(clicks).toBeWithin(50, 80);
    expect(answers.filter((answer) => answer === "duplicate")).toHaveLength(400 - clicks);
    expect(await queue.observe(tenant, { ...report, type: "opened", result: {} })).toBe("recorded");
  });

  test("a click that names no link counts once", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    const click = { jobId, type: "clicked", result: {}, suppress: null, known: null } as const;
    expect(await queue.observe(tenant, click)).toBe("recorded");
    expect(await queue.observe(tenant, click)).toBe("duplicate");
  });

  test("an event before the settlement is kept, and the settlement keeps it", async () => {
    const { tenant, lease } = await world();
    const jobId = await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    await queue.observe(tenant, {
      jobId,
      type: "delivered",
      result: {},
      suppress: null,
      known: null,
    });
    await queue.settle(lease, [sent(job)]);
    const types = (await queue.job(tenant, jobId))?.events.map((event) => event.type);
    expect(types).toEqual(["sent", "delivered"]);
  });

  test("a job that has left is unknown until the caller brings it from the event store", async () => {
    const { tenant } = await world();
    const jobId = jobIds.next();
    const observation = { jobId, type: "opened", result: {}, suppress: null } as const;
    expect(await queue.observe(tenant, { ...observation, known: null })).toBe("unknown");
    const known: JobRecord = {
      jobId,
      tenantId: "acme",
      channel: "email",
      status: "success",
      attempts: 1,
      result: {},
      events: [{ eventId: 5, type: "sent", result: {} }],
    };
    expect(await queue.observe(tenant, { ...observation, known })).toBe("recorded");
    expect((await queue.job(tenant, jobId))?.events.map((event) => event.type)).toEqual(["sent", "opened"]);
    expect(await queue.observe({ ...tenant, tenantId: "other" }, { ...observation, known: null })).toBe("unknown");
  });
});

describe("record", () => {
  test("hands out the same batch until it is stored, then the next, each row once", async () => {
    const { tenant, lease, recorder } = await world();
    const one = await accept(tenant);
    await queue.settle(lease, [sent(first(await pullOne(lease, "acme")))]);
    const batch = await record(recorder, null);
    expect(batch?.rows).toMatchObject([
      {
        tenantId: "acme",
        jobId: one,
        channel: "email",
        type: "sent",
        result: {},
        finished: { status: "success", attempts: 1 },
      },
    ]);
    await queue.observe(tenant, {
      jobId: one,
      type: "delivered",
      result: {},
      suppress: null,
      known: null,
    });
    expect(await record(recorder, null)).toEqual({ token: batch?.token ?? "", rows: batch?.rows ?? [], more: true });
    const next = await record(recorder, batch);
    expect(next?.rows.map((row) => [row.type, row.finished])).toEqual([["delivered", null]]);
    expect(next?.token).not.toBe(batch?.token);
    // A late repeat of the first removal removes no rows.
    expect(await record(recorder, batch)).toEqual(next);
    expect(await record(recorder, next)).toBeNull();
  });

  test("carries any JSON result", async () => {
    const { tenant, lease, recorder } = await world();
    await accept(tenant);
    const job = first(await pullOne(lease, "acme"));
    const result = { error: 'line\nbreak "quoted" \\ = \u2028 é 𝄞', nested: { list: [1, null, true], empty: {} } };
    await queue.settle(lease, [{ kind: "final", job, status: "failed", result, event: { type: "failed", result } }]);
    expect(first((await record(recorder, null))?.rows ?? []).result).toEqual(result);
    expect((await queue.job(tenant, job.jobId))?.result).toEqual(result);
    expect((await queue.job(tenant, job.jobId))?.events[0]?.result).toEqual(result);
  });
});
