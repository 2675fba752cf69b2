import { expect, test } from "bun:test";
import { JobIds } from "../../src/domain/ids.ts";
import type { JobRecord, JobStatus } from "../../src/domain/jobs/job.ts";
import { ANY_JOB, type FinishedJobSummary, type QueuedJobSummary } from "../../src/domain/jobs/job-search.ts";
import { findJobs } from "../../src/events/find-jobs.ts";
import { eventLimits } from "../../src/events/limits.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { systemRandom } from "../../src/runtime/system-random.ts";

const TENANT = { tenantId: "acme", shard: 0 };
const ids = new JobIds(systemClock, systemRandom);
const newestFirst = (jobIds: readonly string[]) => jobIds.toSorted().toReversed();

/** A tenant's jobs in the queue, with their records' fields, and those in the event store. */
class Jobs {
  readonly waiting: QueuedJobSummary[] = [];
  readonly stored: FinishedJobSummary[] = [];
  lookedUp = 0;
  private readonly records = new Map<string, JobRecord>();

  add(status: JobStatus, isEnded: boolean | null): string {
    const jobId = ids.next();
    const entry = { jobId, channel: "email", tags: [], dueMs: null, nextAttemptMs: null } as const;
    this.waiting.push({ ...entry, recipient: "ann@example.com", template: null, isEnded });
    this.records.set(jobId, { jobId, ...TENANT, channel: "email", status, attempts: 0, result: null, events: [] });
    return jobId;
  }

  addStored(jobId: string): void {
    const job = { jobId, tenantId: "acme", channel: "email", status: "failed", attempts: 1, result: {} } as const;
    this.stored.push({ ...job, template: "", recipientDomain: "", tags: [], finishedAtMs: 0, endEventId: 0 });
  }

  async page(status: JobStatus | null, beforeJobId: string | null = null, limit = 100) {
    const isBelow = ({ jobId }: { readonly jobId: string }) => beforeJobId === null || jobId < beforeJobId;
    const queue = {
      waitingJobs: async () => ({ jobs: this.waiting.filter(isBelow), isIncomplete: false }),
      job: async (_: unknown, jobId: string) => {
        this.lookedUp += 1;
        return this.records.get(jobId) ?? null;
      },
    };
    const finishedJobs = { finished: async () => ({ jobs: this.stored.filter(isBelow), moreBelow: null }) };
    const page = await findJobs({ queue, finishedJobs }, TENANT, { ...ANY_JOB, status, beforeJobId }, limit);
    return { ids: page.jobs.map(({ jobId }) => jobId), next: page.moreBelow };
  }
}

test("jobs that wait cost no look-up where ended ones are wanted, nor ended ones where waiting ones are", async () => {
  const jobs = new Jobs();
  const pending = Array.from({ length: 300 }, () => jobs.add("pending", false));
  const failed = [jobs.add("failed", true), jobs.add("failed", null)];
  jobs.add("success", true);
  expect(await jobs.page("failed")).toEqual({ ids: newestFirst(failed), next: null });
  expect(jobs.lookedUp).toBe(3);
  jobs.lookedUp = 0;
  expect(await jobs.page("pending", null, 500)).toEqual({ ids: newestFirst(pending), next: null });
  expect(jobs.lookedUp).toBe(301);
});

test("a job that waits again is not listed by its end before", async () => {
  const jobs = new Jobs();
  jobs.addStored(jobs.add("pending", false));
  const other = ids.next();
  jobs.addStored(other);
  expect(await jobs.page("failed")).toEqual({ ids: [other], next: null });
});

test("a page looks up a bounded number of records, and its cursor goes on behind them", async () => {
  const jobs = new Jobs();
  const running = [jobs.add("running", false)];
  for (let n = 0; n < 2 * eventLimits.jobsLookedUpMax; n += 1) jobs.add("pending", false);
  running.push(jobs.add("running", false));
  const found: string[] = [];
  let pages = 0;
  for (let next: string | null = null; pages === 0 || next !== null; pages += 1) {
    jobs.lookedUp = 0;
    const page: Awaited<ReturnType<Jobs["page"]>> = await jobs.page("running", next);
    expect(jobs.lookedUp).toBeWithin(1, eventLimits.jobsLookedUpMax + 1);
    found.push(...page.ids);
    next = page.next;
  }
  expect([found, pages]).toEqual([newestFirst(running), 3]);
});
