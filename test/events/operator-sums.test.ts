import { afterAll, beforeAll, expect, test } from "bun:test";
import { JobIds, jobIdAt } from "../../src/domain/ids.ts";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import type { StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import { ANY_JOB } from "../../src/domain/jobs/job-search.ts";
import { ClickHouseEventWriter } from "../../src/events/clickhouse-event-writer.ts";
import { ClickHouseOperatorSums } from "../../src/events/clickhouse-operator-sums.ts";
import { withoutPeople } from "../../src/events/endpoints/operator-sums-endpoints.ts";
import { ClickHouseFinishedJobs } from "../../src/events/finished-jobs.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";
import { contentSeal } from "../../src/storage/content-seal.ts";
import { recipientIndex } from "../../src/storage/recipient-index.ts";
import { startEngine, type TestEventStore } from "../support/clickhouse-event-store.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
const UNKNOWN = "the mail server refused the message: 550 5.1.1 no such user";
const index = recipientIndex(new Uint8Array(32).fill(7));
const ids = new JobIds(systemClock, systemRandom);

let chdb: Awaited<ReturnType<typeof startEngine>>;
let store: TestEventStore;
let sums: ClickHouseOperatorSums;
let jobs: ClickHouseFinishedJobs;
let event = firstEventIdAt(NOW_MS - HOUR_MS);
const range = { fromMs: NOW_MS - 24 * HOUR_MS, beforeMs: NOW_MS + 24 * HOUR_MS };

beforeAll(async () => {
  chdb = await startEngine();
  store = await chdb.eventStore("operator_sums");
  const ports = {
    recipients: index,
    seal: contentSeal(new Uint8Array(32), systemRandom),
    payloads: { get: async () => null },
  };
  const writer = new ClickHouseEventWriter(store.writing, store.target, systemClock, { ports });
  sums = new ClickHouseOperatorSums(store.reading, store.target);
  jobs = new ClickHouseFinishedJobs(store.reading, store.target, index);
  await writer.write("all", [
    failed("acme", FIRST, UNKNOWN),
    failed("acme", ids.next(), "550 5.1.1 nobody here"),
    // It failed once more after it was sent again.
    failed("acme", FIRST, UNKNOWN),
    failed("acme", ids.next(), "550 5.7.1 blocked by a list"),
    failed("beta", ids.next(), UNKNOWN),
    failed("beta", jobIdAt(range.fromMs - HOUR_MS), UNKNOWN),
    sent("acme", BOUNCED),
    { ...bare("acme", BOUNCED), type: "bounced", result: { diagnostic: "5.1.1 unknown" }, finished: null },
  ]);
}, 120_000);
afterAll(() => chdb.stop());

const FIRST = ids.next();
const BOUNCED = ids.next();

function bare(tenantId: string, jobId: string) {
  event += 4096;
  return { tenantId, jobId, channel: "email", eventId: event } as const;
}

function failed(tenantId: string, jobId: string, error: string): StoredEventRow {
  const finished = { status: "failed", attempts: 1, result: { error } } as const;
  return { ...bare(tenantId, jobId), type: "failed", result: { error }, finished };
}

function sent(tenantId: string, jobId: string): StoredEventRow {
  const finished = { status: "success", attempts: 1, result: {} } as const;
  return { ...bare(tenantId, jobId), type: "sent", result: {}, finished };
}

test("failures are grouped by tenant and cause, each job once, with the words of the latest", async () => {
  const groups = await sums.failures(range, 10);
  expect(groups.map(({ tenantId, type, failureClass, jobs: count }) => [tenantId, type, failureClass, count])).toEqual([
    ["acme", "failed", "recipient", 2],
    ["acme", "bounced", "recipient", 1],
    ["acme", "failed", "refused", 1],
    ["beta", "failed", "recipient", 1],
  ]);
  expect(groups[0]).toMatchObject({ channel: "email", example: UNKNOWN, sent: 1 });
  expect(await sums.failures(range, 1)).toHaveLength(1);
});

test("the jobs of a group are found by its cause, and counted for a retry", async () => {
  const filter = { ...ANY_JOB, failureClass: "recipient", fromJobId: jobIdAt(range.fromMs) } as const;
  const list = async (more: Partial<typeof ANY_JOB>) =>
    (await jobs.finished("acme", { ...filter, ...more }, 10)).jobs.map(({ jobId }) => jobId);
  expect(await list({ status: "failed" })).toHaveLength(2);
  expect(await list({ status: "success" })).toEqual([BOUNCED]);
  expect(await jobs.count("acme", { ...filter, status: "failed" })).toBe(2);
});

test("an example quotes no person", () => {
  expect(withoutPeople("550 5.1.1 <ann.lee@example.com>: no such user")).toBe(
    "550 5.1.1 <…@example.com>: no such user",
  );
  expect(withoutPeople("+49 30 1234567 is no number")).toBe("… is no number");
});

test("events are summed by minute, hour and UTC day", async () => {
  for (const span of ["minute", "hour", "day"] as const) {
    const found = await sums.spans(range, span);
    const failures = found.filter(({ type }) => type === "failed").reduce((sum, { events }) => sum + events, 0);
    expect([span, failures]).toEqual([span, 6]);
  }
  const [hour] = (await sums.spans(range, "hour")).filter(({ type }) => type === "sent");
  expect(hour).toEqual({ atMs: NOW_MS - HOUR_MS, channel: "email", type: "sent", events: 1 });
});
