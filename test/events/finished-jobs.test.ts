import { afterAll, beforeAll, expect, test } from "bun:test";
import { JobIds } from "../../src/domain/ids.ts";
import type { FinishedJob, StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import { ANY_JOB, type JobFilter } from "../../src/domain/jobs/job-search.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { ClickHouseFinishedJobs } from "../../src/events/finished-jobs.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { contentSeal } from "../../src/storage/content-seal.ts";
import { recipientIndex } from "../../src/storage/recipient-index.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";

const index = recipientIndex(new Uint8Array(32).fill(7));
const ids = new JobIds(systemClock, systemRandom);
const TRY = { at: 1_767_225_600_000, outcome: "failed", relay: "mx.example:25", reply: "550 no" } as const;

let chdb: Awaited<ReturnType<typeof startEngine>>;
let store: TestEventStore;
let writer: ClickHouseEventWriter;
let jobs: ClickHouseFinishedJobs;
let event = 4_096_000_000_000;

beforeAll(async () => {
  chdb = await startEngine();
  store = await chdb.eventStore("finished_jobs");
  writer = new ClickHouseEventWriter(store.writing, store.target, systemClock, {
    ports: {
      recipients: index,
      seal: contentSeal(new Uint8Array(32), systemRandom),
      payloads: { get: async () => null },
    },
  });
  jobs = new ClickHouseFinishedJobs(store.reading, store.target, index);
});
afterAll(() => chdb.stop());

function ended(tenantId: string, jobId: string, finished: Partial<FinishedJob> = {}): StoredEventRow {
  event += 4096;
  const job = { status: "success", attempts: 1, result: {}, ...finished } as const;
  return { tenantId, jobId, channel: "email", eventId: event, type: "sent", result: {}, finished: job };
}

const readIds = async (tenantId: string, filter: Partial<JobFilter>, limit = 100) =>
  (await jobs.finished(tenantId, { ...ANY_JOB, ...filter }, limit)).jobs.map(({ jobId }) => jobId);

test("a recipient is found by the index of its tenant, and is nowhere stored in clear", async () => {
  const [ann, bob, other] = [ids.next(), ids.next(), ids.next()];
  await writer.write("t1", [
    ended("acme", ann, { recipient: "ann@example.com", tries: [TRY] }),
    ended("acme", bob, { recipient: "bob@example.org", template: "hi" }),
    ended("beta", other, { recipient: "ann@example.com" }),
  ]);
  expect(await readIds("acme", { recipient: "ann@example.com" })).toEqual([ann]);
  expect(await readIds("beta", { recipient: "ann@example.com" })).toEqual([other]);
  expect(await readIds("acme", { recipient: "eve@example.com" })).toEqual([]);
  expect(await readIds("acme", { template: "hi" })).toEqual([bob]);
  const rows = await store.reading.rows("SELECT * FROM finished_jobs.jobs");
  expect(JSON.stringify(rows)).not.toContain("ann@");
  expect(await jobs.finishedJob("acme", ann)).toMatchObject({ recipientDomain: "example.com" });
  expect((await store.reader.job("acme", ann))?.tries).toEqual([{ ...TRY, class: "other" }]);
  const hashes = await store.reading.rows("SELECT DISTINCT recipient_hash FROM finished_jobs.jobs");
  expect(hashes).toHaveLength(2);
});

test("a recipient is found with all tenants, and a job's tenant by its id", async () => {
  const recipient = "everywhere@example.com";
  const rows = Array.from({ length: 3_000 }, (_, n) =>
    ended(`t${n}`, ids.next(), { recipient: n % 1_000 === 7 ? recipient : `r${n}@example.com` }),
  );
  await writer.write("anywhere", rows);
  // Ids of one millisecond have no order of their own.
  const newestFirst = (one: StoredEventRow, other: StoredEventRow) => (one.jobId < other.jobId ? 1 : -1);
  const wanted = rows.filter((_, n) => n % 1_000 === 7).toSorted(newestFirst);
  const found = wanted.map(({ tenantId, jobId }) => [tenantId, jobId]);
  const filter = { ...ANY_JOB, recipient };
  const page = await jobs.finishedAnywhere(filter, 2);
  expect(page.jobs.map(({ tenantId, jobId }) => [tenantId, jobId])).toEqual(found.slice(0, 2));
  const rest = await jobs.finishedAnywhere({ ...filter, beforeJobId: page.moreBelow }, 2);
  expect([rest.jobs.map(({ tenantId, jobId }) => [tenantId, jobId]), rest.moreBelow]).toEqual([found.slice(2), null]);
  expect(await jobs.findOwner(wanted[1]?.jobId ?? "")).toBe(wanted[1]?.tenantId ?? "");
  expect(await jobs.findOwner(ids.next())).toBeNull();
});

test("what was reported after a job's end is told, and not what is about a copy or a former life", async () => {
  const [bounced, read, copied, again, quiet] = [ids.next(), ids.next(), ids.next(), ids.next(), ids.next()];
  const later = (jobId: string, type: StoredEventRow["type"], result = {}): StoredEventRow => {
    event += 4096;
    return { tenantId: "later", jobId, channel: "email", eventId: event, type, result, finished: null };
  };
  await writer.write("later", [
    ...[bounced, read, copied, again, quiet].map((jobId) => ended("later", jobId)),
    later(bounced, "delivered"),
    later(bounced, "bounced", { code: 550, enhanced_code: null, diagnostic: "no" }),
    later(read, "read"),
    later(copied, "bounced", { recipient: "cc@example.com", code: 550, enhanced_code: null, diagnostic: "no" }),
    later(again, "complained"),
    ended("later", again),
    later(again, "delivered"),
  ]);
  const page = (await jobs.finished("later", ANY_JOB, 10)).jobs;
  const found = await jobs.laterEvents(page);
  const findTypes = (jobId: string) => found.get(jobId)?.toSorted() ?? [];
  expect([bounced, read, copied, again, quiet].map(findTypes)).toEqual([
    ["bounced", "delivered"],
    ["read"],
    [],
    ["delivered"],
    [],
  ]);
});

test("pages are newest first, without gaps or repeats, whatever their size", async () => {
  const made = Array.from({ length: 23 }, () => ids.next());
  await writer.write(
    "t2",
    made.map((jobId) => ended("paged", jobId)),
  );
  for (const limit of [1, 7, 23, 24]) {
    const seen: string[] = [];
    for (let before: string | null = null, isMore = true; isMore; ) {
      const page = await jobs.finished("paged", { ...ANY_JOB, beforeJobId: before }, limit);
      seen.push(...page.jobs.map(({ jobId }) => jobId));
      before = page.moreBelow;
      isMore = before !== null;
    }
    expect(seen).toEqual(made.toSorted().toReversed());
  }
});

test("jobs are found by their tags, and have a row for each try", async () => {
  const tags = [{ name: "campaign", value: "spring" }];
  const tries = [
    { at: 1_767_225_600_000, outcome: "retry", relay: "mx.example:25", reply: "451 4.7.1 later", next: 9, ms: 1_200 },
    { at: 1_767_225_660_123, outcome: "failed", reply: "the mail server refused the message: 550 5.7.1 blocked" },
  ] as const;
  const [tagged, other] = [ids.next(), ids.next()];
  await writer.write("tags", [
    ended("tagged", tagged, { tags, tries, recipient: "ann@example.net", status: "failed" }),
    ended("tagged", other, { tags: [{ name: "campaign", value: "autumn" }] }),
  ]);
  expect(await readIds("tagged", { tag: "campaign:spring" })).toEqual([tagged]);
  expect(await readIds("tagged", { tag: "campaign:winter" })).toEqual([]);
  expect(await jobs.finishedJob("tagged", tagged)).toMatchObject({ tags });
  const columns = "toString(at), outcome, relay, code, enhanced_code, failure_class, ms, recipient_domain";
  expect(
    await store.reading.rows(`SELECT ${columns} FROM finished_jobs.attempts WHERE tenant_id = 'tagged' ORDER BY at`),
  ).toEqual([
    ["2026-01-01 00:00:00.000", "retry", "mx.example:25", 451, "4.7.1", "throttled", 1_200, "example.net"],
    ["2026-01-01 00:01:00.123", "failed", "", 550, "5.7.1", "refused", null, "example.net"],
  ]);
});

test("a job counts with its latest state alone", async () => {
  const again = ids.next();
  await writer.write("t3", [ended("retried", again, { status: "failed", result: { error: "no" } })]);
  expect(await readIds("retried", { status: "failed" })).toEqual([again]);
  await writer.write("t4", [ended("retried", again, { attempts: 2 })]);
  expect(await readIds("retried", { status: "failed" })).toEqual([]);
  expect(await readIds("retried", { status: "success" })).toEqual([again]);
});

test("rows that are set aside do not have the recipient either", async () => {
  const row = ended("acme", ids.next(), { recipient: "ann@example.com" });
  await writer.write("t5", [{ ...row, tenantId: "no tenant" }], "apart");
  const rows = await store.reading.rows("SELECT row FROM finished_jobs.refused_rows");
  expect(rows).toHaveLength(1);
  expect(JSON.stringify(rows)).not.toContain("ann@");
});

test("a search reads only the places that may have the recipient", async () => {
  const many = Array.from({ length: 5_000 }, (_, n) => ended("large", ids.next(), { recipient: `r${n}@example.com` }));
  await writer.write("t6", many);
  const plan = await store.reading.rows(
    `EXPLAIN indexes = 1 SELECT job_id FROM finished_jobs.jobs WHERE tenant_id = 'large' AND recipient_hash = '${index.hashRecipient("r77@example.com")}'`,
  );
  const text = plan.map(([line]) => String(line)).join("\n");
  expect(text).toContain("recipient_bloom");
  const [, read, all] = /recipient_bloom[\s\S]*?Granules: (\d+)\/(\d+)/.exec(text) ?? [];
  expect(Number(read)).toBeLessThan(Number(all));
  expect(await readIds("large", { recipient: "r77@example.com" })).toEqual([many[77]?.jobId ?? ""]);
});
