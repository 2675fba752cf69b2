import { expect, test } from "bun:test";
import type { Attempt } from "../../../src/domain/jobs/job.ts";
import {
  ANY_JOB,
  type FinishedJobSummary,
  type FinishedJobs,
  type JobFilter,
} from "../../../src/domain/jobs/job-search.ts";
import { limits } from "../../../src/domain/limits.ts";
import { engineLimits } from "../../../src/engine/limits.ts";
import { findJobs } from "../../../src/events/find-jobs.ts";
import { measureRedisUse } from "../../guard/redis-use.ts";
import { eventually } from "../../support/eventually.ts";
import { accept, failed, first, pullOne, queue, record, redis, sent, useQueueWorld, world } from "./queue-world.ts";

useQueueWorld();

const listIds = (jobs: readonly { readonly jobId: string }[]) => jobs.map(({ jobId }) => jobId);
const newestFirst = (ids: readonly string[]) => ids.toSorted().toReversed();
const aTry = (at: number): Attempt => ({ at, outcome: "retry", relay: "mx.example:25", reply: `451 "${at}"`, next: 9 });

test("a job is found wherever it waits, until the event store has it", async () => {
  const at = await world();
  const tenant = at.tenant;
  const waits = await accept(tenant, { template: "hi", recipient: "bob@example.org" });
  await accept({ ...tenant, tenantId: "beta" });
  const look = async (filter: Partial<JobFilter> = {}) =>
    (await queue.waitingJobs(tenant, { ...ANY_JOB, ...filter })).jobs;
  expect(await look()).toMatchObject([
    { jobId: waits, channel: "email", recipient: "bob@example.org", template: "hi", nextAttemptMs: null },
  ]);
  const job = first(await pullOne(at.lease, "acme"));
  await queue.settle(at.lease, [{ kind: "retry", job, delayMs: 60_000, status: "running", attempt: aTry(1) }]);
  const parked = first(await look());
  expect(parked.nextAttemptMs).toBeWithin(Date.now() + 50_000, Date.now() + 70_000);
  expect(await queue.waitingJob(tenant, waits)).toMatchObject({ jobId: waits, template: "hi" });
  expect(await queue.waitingJob({ ...tenant, tenantId: "beta" }, waits)).toBeNull();

  const fails = await accept(tenant);
  const next = first(await pullOne(at.lease, "acme"));
  await queue.settle(at.lease, [failed(next)]);
  const ended = (await look()).map(({ jobId, isEnded }) => [jobId, isEnded]);
  expect(Object.fromEntries(ended)).toEqual({ [waits]: false, [fails]: true });
  expect(listIds(await look({ recipient: "bob@example.org" }))).toEqual([waits]);
  expect(listIds(await look({ template: "hi" }))).toEqual([waits]);
  expect(listIds(await look({ channel: "wallet" }))).toEqual([]);
  expect(listIds(await look({ beforeJobId: first(newestFirst([waits, fails])) }))).toHaveLength(1);

  const batch = await record(at.recorder, null);
  expect(batch?.rows.map(({ finished }) => finished?.recipient)).toEqual(["ann@example.com"]);
  await record(at.recorder, batch);
  expect(listIds(await look())).toEqual([waits]);
});

test("a job is found by its tags wherever it waits, traced or with a payload that is stored elsewhere", async () => {
  const at = await world();
  const tags = [
    { name: "campaign", value: "spring" },
    { name: "kind", value: "offer" },
  ];
  const look = async (tag: string) => listIds((await queue.waitingJobs(at.tenant, { ...ANY_JOB, tag })).jobs);
  const plain = await accept(at.tenant, { tags, payload: '{"a":1}' });
  const traceparent = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
  const traced = await accept(at.tenant, { tags, traceparent, payload: '{"a":1}' });
  const stored = { sha256: "a".repeat(64), bytes: 300_000 };
  const elsewhere = await accept(at.tenant, { tags, stored, payload: "" });
  await accept(at.tenant, { payload: '{"$job2":"campaign=spring|"}' });
  const all = newestFirst([plain, traced, elsewhere]);
  expect(await look("kind:offer")).toEqual(all);
  expect(await look("kind:spring")).toEqual([]);
  expect((await queue.waitingJob(at.tenant, traced))?.tags).toEqual(tags);
  const [parked, ended] = await pullOne(at.lease, "acme");
  if (parked === undefined || ended === undefined) throw new Error("two jobs are pulled");
  await queue.settle(at.lease, [{ kind: "retry", job: parked, delayMs: 60_000, status: "running" }, failed(ended)]);
  expect(await look("campaign:spring")).toEqual(all);
});

test("a recipient's jobs are found with all tenants, wherever they wait, behind whatever else waits", async () => {
  const at = await world();
  const beta = { ...at.tenant, tenantId: "beta" };
  const recipient = 'an"n@example.com';
  const shards = at.tenant.shard + 1;
  const look = async () => {
    const { jobs, isIncomplete } = await queue.waitingAnywhere(shards, { ...ANY_JOB, recipient });
    expect(isIncomplete).toBe(false);
    return jobs.map(({ jobId, tenant }) => `${tenant.tenantId} ${jobId}`);
  };
  const parks = await accept(at.tenant, { recipient });
  const job = first(await pullOne(at.lease, "acme"));
  await queue.settle(at.lease, [{ kind: "retry", job, delayMs: 60_000, status: "running" }]);
  const ends = await accept(at.tenant, { recipient });
  await queue.settle(at.lease, [failed(first(await pullOne(at.lease, "acme")))]);
  const waits = await accept(beta, { recipient });
  for (let n = 0; n < 40; n += 1) await accept(beta);
  // Ids of one millisecond have no order of their own.
  const owners = { [waits]: "beta", [ends]: "acme", [parks]: "acme" };
  expect(await look()).toEqual(newestFirst([parks, ends, waits]).map((id) => `${owners[id]} ${id}`));
  for (const id of [parks, ends]) expect(await queue.findOwner(shards, id)).toMatchObject({ tenantId: "acme" });
  expect(await queue.findOwner(shards, waits)).toMatchObject({ tenantId: "beta" });
  expect(
    await queue.findOwner(
      shards,
      waits.replace(/.$/, (last) => (last === "0" ? "1" : "0")),
    ),
  ).toBeNull();
});

test("a tenant's events are unrecorded until the event store has them, also in a batch that is handed out", async () => {
  const at = await world();
  const beta = { ...at.tenant, tenantId: "beta" };
  const look = async () => [await queue.hasUnrecorded(at.tenant), await queue.hasUnrecorded(beta)];
  await accept(at.tenant);
  expect(await look()).toEqual([false, false]);
  await queue.settle(at.lease, [sent(first(await pullOne(at.lease, "acme")))]);
  expect(await look()).toEqual([true, false]);
  const batch = await record(at.recorder, null);
  expect(await look()).toEqual([true, false]);
  await record(at.recorder, batch);
  expect(await look()).toEqual([false, false]);
});

test("an outbox that is too long to be looked through may have everybody's events", async () => {
  const at = await world();
  const row = (tenantId: string) => `["${tenantId}","01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11","e",1,"s",{}]`;
  const fill = (entries: number, tenantId: string) => {
    const calls = redis.client.pipeline();
    for (let n = 0; n < entries; n += 1) calls.xadd(`${at.prefix}:outbox`, "*", "c", "1", "r", row(tenantId));
    return calls.exec();
  };
  await fill(engineLimits.surveyUnrecordedMax - 1, "beta");
  expect(await queue.hasUnrecorded(at.tenant)).toBe(false);
  const use = await measureRedisUse(redis.client, () => queue.hasUnrecorded({ ...at.tenant, tenantId: "beta" }));
  expect(use.commands).toBeLessThan(5);
  await fill(1, "beta");
  expect(await queue.hasUnrecorded(at.tenant)).toBe(true);
});

test("the jobs before one are counted, as far as a look goes", async () => {
  const at = await world();
  const ids: string[] = [];
  for (let n = 0; n < 40; n += 1) ids.push(await accept(at.tenant));
  const ahead = (jobId: string | undefined) => queue.jobsAhead(at.tenant, "email", jobId ?? "");
  expect([await ahead(ids[0]), await ahead(ids[39])]).toEqual([0, 39]);
  expect(await queue.jobsAhead(at.tenant, "wallet", ids[0] ?? "")).toBeNull();
  expect(await ahead("x")).toBeNull();
});

test("a question is answered by the owner of its shard alone, and one that nobody answers soon ends", async () => {
  const job = { tenantId: "acme", channel: "email", jobId: "01936f2e-7c1a-7b3e-9a55-2f1c8f0a4d11" };
  const stop = queue.questions.onQuestion((shard, { jobId }) =>
    shard === 3 && jobId === job.jobId ? { waitsFor: "plan_pace", forMs: 120 } : null,
  );
  // An answer may come too late for one question.
  const answer = await eventually("it is answered", () => queue.questions.ask(3, job));
  expect(answer).toEqual({ waitsFor: "plan_pace", forMs: 120 });
  expect(await queue.questions.ask(4, job)).toBeNull();
  stop();
  expect(await queue.questions.ask(3, job)).toBeNull();
});

test("one long queue does not hide the other tenants' jobs from a search", async () => {
  const at = await world();
  const recipient = "one-long-queue@example.com";
  const behind = await accept(at.tenant, { recipient });
  const most = engineLimits.surveyAnywhereQueueMax;
  await Promise.all(Array.from({ length: most }, () => accept(at.tenant, { recipient: "bob@example.com" })));
  const other = await accept({ ...at.tenant, tenantId: "beta" }, { recipient });
  const shards = at.tenant.shard + 1;
  const { jobs, isIncomplete } = await queue.waitingAnywhere(shards, { ...ANY_JOB, recipient });
  expect([listIds(jobs), isIncomplete]).toEqual([[other], true]);
  expect(await queue.findOwner(shards, behind)).toEqual(at.tenant);
});

test("a job keeps its latest tries, and its end takes them along", async () => {
  const at = await world();
  const jobId = await accept(at.tenant);
  const count = limits.attemptsKeptMax + 5;
  for (let n = 0; n < count; n += 1) {
    const job = first(await pullOne(at.lease, "acme"));
    await queue.settle(at.lease, [{ kind: "retry", job, delayMs: 0, status: "running", attempt: aTry(n) }]);
  }
  const kept = Array.from({ length: limits.attemptsKeptMax }, (_, n) => aTry(n + 5));
  expect((await queue.job(at.tenant, jobId))?.tries).toEqual(kept);
  const last = { at: 99, outcome: "sent", reply: "250 ok" } as const;
  await queue.settle(at.lease, [{ ...sent(first(await pullOne(at.lease, "acme"))), attempt: last } as never]);
  const rows = (await record(at.recorder, null))?.rows ?? [];
  expect(rows.map(({ finished }) => finished?.tries)).toEqual([[...kept.slice(1), last]]);
  expect(await queue.job(at.tenant, jobId)).toMatchObject({ status: "success", attempts: count + 1, tries: kept });
});

test("pages show each job once while jobs end between them", async () => {
  const at = await world();
  const made: string[] = [];
  for (let n = 0; n < 9; n += 1) made.push(await accept(at.tenant));
  const stored = new Map<string, FinishedJobSummary>();
  const finishedJobs: FinishedJobs = {
    async finished(_, { beforeJobId }, limit) {
      const below = newestFirst([...stored.keys()]).filter((id) => beforeJobId === null || id < beforeJobId);
      const jobs = below.slice(0, limit).flatMap((id) => stored.get(id) ?? []);
      return { jobs, moreBelow: below.length > limit ? (jobs.at(-1)?.jobId ?? null) : null };
    },
    finishedJob: async (_, jobId) => stored.get(jobId) ?? null,
    count: async () => stored.size,
  };
  const seen: string[] = [];
  for (let before: string | null = null, isMore = true; isMore; ) {
    const filter: JobFilter = { ...ANY_JOB, beforeJobId: before };
    const page = await findJobs({ queue, finishedJobs }, at.tenant, filter, 2);
    seen.push(...listIds(page.jobs));
    before = page.moreBelow;
    isMore = before !== null;
    // Two more end, one of them is recorded.
    const jobs = (await pullOne(at.lease, "acme")).slice(0, 2);
    await queue.settle(at.lease, jobs.map(sent));
    const batch = await record(at.recorder, null);
    for (const { jobId, channel, finished } of batch?.rows ?? []) {
      if (finished === null) continue;
      stored.set(jobId, {
        tenantId: "acme",
        jobId,
        channel,
        ...finished,
        template: "",
        recipientDomain: "",
        finishedAtMs: 0,
        endEventId: 0,
        tags: [],
      });
    }
    if (batch !== null && seen.length % 4 === 0) await record(at.recorder, batch);
  }
  expect(seen).toEqual(newestFirst(made));
});

test("however much is queued, a look reads a bounded part in small pieces", async () => {
  const at = await world();
  const most = engineLimits.surveyEntriesMax;
  for (let n = 0; n < most + 100; n += 1_010) {
    await Promise.all(Array.from({ length: 1_010 }, () => accept(at.tenant)));
  }
  // A key that expired meanwhile would count as a write, too.
  await Promise.all((await redis.client.keys("*")).map((key) => redis.client.persist(key)));
  const use = await measureRedisUse(redis.client, async () => {
    const { jobs, isIncomplete } = await queue.waitingJobs(at.tenant, ANY_JOB);
    expect([jobs.length, isIncomplete]).toEqual([most, true]);
  });
  expect(use.scripts).toBeGreaterThan(most / engineLimits.surveyStepMax);
  expect(use.scripts).toBeLessThan((2 * most) / engineLimits.surveyStepMax);
  expect(use.appended).toBe(0);
});
