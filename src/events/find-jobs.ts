import { jobIdAt, jobTimeMs } from "../domain/ids.ts";
import type { EventType } from "../domain/jobs/event.ts";
import { type FailureClass, failureClassOfJob } from "../domain/jobs/failure-class.ts";
import { type ChannelName, isFinal, type JobRecord, type JobStatus } from "../domain/jobs/job.ts";
import type {
  AllFinishedJobs,
  AllQueuedJobs,
  FinishedJobSummary,
  FinishedJobs,
  JobFilter,
  QueuedJobOfTenant,
  QueuedJobSummary,
  QueuedJobs,
  RecipientFilter,
} from "../domain/jobs/job-search.ts";
import type { Tag } from "../domain/jobs/tags.ts";
import { recipientDomain } from "../domain/tenants/recipient-index.ts";
import type { TenantRef } from "../domain/tenants/tenant.ts";
import { endTimeMs, typesAfterEnd } from "./job-outcome.ts";
import { eventLimits } from "./limits.ts";

/** A job as operators see it in a list. Times are Unix ms; "" and null: none. */
export interface FoundJob {
  readonly jobId: string;
  readonly channel: ChannelName;
  readonly status: JobStatus;
  readonly attempts: number;
  readonly createdAtMs: number;
  readonly finishedAtMs: number | null;
  readonly nextAttemptMs: number | null;
  readonly error: string | null;
  readonly failureClass: FailureClass | null;
  readonly template: string;
  readonly recipientDomain: string;
  readonly tags: readonly Tag[];
  /** The event that ended the job, if it is in the event store. */
  readonly endEventId: number | null;
  /** Types of events after the end of a job that is not in the event store yet. */
  readonly later: readonly EventType[];
}

export interface FoundJobOfTenant extends FoundJob {
  readonly tenantId: string;
}

/** Stores searched for jobs of all tenants. */
export interface AnywherePorts {
  readonly queue: AllQueuedJobs & Pick<QueuedJobs, "job" | "waitingJob">;
  readonly finishedJobs: AllFinishedJobs & Pick<FinishedJobs, "finishedJob">;
  readonly shards: number;
}

export interface FoundJobs<Found extends FoundJob = FoundJob> {
  readonly jobs: readonly Found[];
  /** The cursor of the next page; null: this is the last. */
  readonly moreBelow: string | null;
  /** Whether some queued jobs were not searched. */
  readonly isIncomplete: boolean;
}

interface Ports {
  readonly queue: Pick<QueuedJobs, "waitingJobs" | "job">;
  readonly finishedJobs: Pick<FinishedJobs, "finished">;
}

/** The sources of a search, for one tenant or for all. */
interface Places<Waiting extends QueuedJobSummary, Finished extends FinishedJobSummary, Found extends FoundJob> {
  waiting(): Promise<{ readonly jobs: readonly Waiting[]; readonly isIncomplete: boolean }>;
  finished(): Promise<{ readonly jobs: readonly Finished[]; readonly moreBelow: string | null }>;
  foundWaiting(job: Waiting): Promise<Found | null>;
  foundFinished(job: Finished): Found;
}

/** Returns the id range of jobs accepted in [fromMs, beforeMs) (unix ms) below the cursor; null: no bound. */
export function jobIdRange({
  fromMs,
  beforeMs,
  cursor,
}: {
  readonly fromMs: number | null;
  readonly beforeMs: number | null;
  readonly cursor: string | null;
}): Pick<JobFilter, "fromJobId" | "beforeJobId"> {
  const end = beforeMs === null ? null : jobIdAt(beforeMs);
  return {
    fromJobId: fromMs === null ? null : jobIdAt(fromMs),
    beforeJobId: cursor === null || (end !== null && end < cursor) ? end : cursor,
  };
}

/** Returns a page of a tenant's jobs. */
export function findJobs(
  { queue, finishedJobs }: Ports,
  tenant: TenantRef,
  filter: JobFilter,
  limit: number,
): Promise<FoundJobs> {
  return readPage(
    {
      waiting: () => queue.waitingJobs(tenant, filter),
      finished: () => finishedJobs.finished(tenant.tenantId, filter, limit),
      foundWaiting: (job) => unfinished(queue, tenant, job),
      foundFinished,
    },
    filter,
    limit,
  );
}

/** Returns a page of all tenants' jobs for a recipient. */
export function findJobsAnywhere(
  { queue, finishedJobs, shards }: AnywherePorts,
  filter: RecipientFilter,
  limit: number,
): Promise<FoundJobs<FoundJobOfTenant>> {
  return readPage(
    {
      waiting: () => queue.waitingAnywhere(shards, filter),
      finished: () => finishedJobs.finishedAnywhere(filter, limit),
      async foundWaiting(job: QueuedJobOfTenant) {
        const found = await unfinished(queue, job.tenant, job);
        return found === null ? null : { ...found, tenantId: job.tenant.tenantId };
      },
      foundFinished: (job) => ({ ...foundFinished(job), tenantId: job.tenantId }),
    },
    filter,
    limit,
  );
}

/** Finds a job by its id among all tenants. */
export async function findJobAnywhere(
  { queue, finishedJobs, shards }: AnywherePorts,
  jobId: string,
): Promise<FoundJobOfTenant | null> {
  const tenant = await queue.findOwner(shards, jobId);
  if (tenant !== null) {
    const waiting = await queue.waitingJob(tenant, jobId);
    const record = await queue.job(tenant, jobId);
    if (record !== null && !isFinal(record.status)) {
      return { ...foundQueued(record, waiting), tenantId: tenant.tenantId };
    }
    const stored = await finishedJobs.finishedJob(tenant.tenantId, jobId);
    if (stored === null && record !== null) return { ...foundEnded(record, waiting), tenantId: tenant.tenantId };
  }
  const tenantId = tenant?.tenantId ?? (await finishedJobs.findOwner(jobId));
  const job = tenantId === null ? null : await finishedJobs.finishedJob(tenantId, jobId);
  return job === null ? null : { ...foundFinished(job), tenantId: job.tenantId };
}

/**
 * Reads a page of jobs from the queue and the event store, newest first.
 *
 * P1. The queue is read first: a job that moves meanwhile is found in the event store, or in both and shown once.
 * P2. Pages are ranges of job ids, and a job keeps its id: no job is on two pages, and none falls between them.
 * P3. A page looks up a bounded number of records, and may end short. Jobs that cannot have the wanted status cost none.
 */
async function readPage<W extends QueuedJobSummary, S extends FinishedJobSummary, F extends FoundJob>(
  places: Places<W, S, F>,
  { status, failureClass }: JobFilter,
  limit: number,
): Promise<FoundJobs<F>> {
  const { jobs: waiting, isIncomplete } = await places.waiting();
  const stored = await places.finished();
  const finished = new Map(stored.jobs.map((job) => [job.jobId, job]));
  const queued = new Map(waiting.map((job) => [job.jobId, job]));
  const looked = waiting.filter((job) => finished.has(job.jobId) || mayHave(status, job));
  const ids = [...new Set([...finished.keys(), ...looked.map(({ jobId }) => jobId)])]
    .sort()
    .reverse()
    // Below this id the event store has jobs that were not read.
    .filter((jobId) => stored.moreBelow === null || jobId >= stored.moreBelow);
  const look = async (jobId: string) => {
    const ended = finished.get(jobId);
    const job = queued.get(jobId);
    if (job === undefined) return ended === undefined ? null : places.foundFinished(ended);
    const found = await places.foundWaiting(job);
    // A job that was retried is in both: the queue's state is newer until the event store has its end.
    if (found === null && ended !== undefined) return places.foundFinished(ended);
    return failureClass === null || found?.failureClass === failureClass ? found : null;
  };
  const found: F[] = [];
  let lookedUp = 0;
  for (let from = 0; from < ids.length; from += TOGETHER) {
    const here = ids.slice(from, from + TOGETHER);
    if (lookedUp >= eventLimits.jobsLookedUpMax) return { jobs: found, moreBelow: ids[from - 1] ?? null, isIncomplete };
    lookedUp += here.filter((jobId) => queued.has(jobId)).length;
    const piece = await Promise.all(here.map(look));
    for (const [at, job] of piece.entries()) {
      if (found.length === limit) return { jobs: found, moreBelow: ids[from + at - 1] ?? null, isIncomplete };
      if (job !== null && (status === null || job.status === status)) found.push(job);
    }
  }
  return { jobs: found, moreBelow: stored.moreBelow, isIncomplete };
}

/** Records that are read at a time. */
const TOGETHER = 100;

/** Whether its record can have had the status when the queue was read. */
function mayHave(status: JobStatus | null, { isEnded }: QueuedJobSummary): boolean {
  return status === null || isEnded === null || isEnded === isFinal(status);
}

async function unfinished(
  queue: Pick<QueuedJobs, "job">,
  tenant: TenantRef,
  waiting: QueuedJobSummary,
): Promise<FoundJob | null> {
  const record = await queue.job(tenant, waiting.jobId);
  if (record === null) return null;
  return isFinal(record.status) ? foundEnded(record, waiting) : foundQueued(record, waiting);
}

export function foundFinished({ result, ...job }: FinishedJobSummary): FoundJob {
  const why = { error: errorIn(result), failureClass: failureClassOfJob({ ...job, result }) };
  return { ...job, createdAtMs: jobTimeMs(job.jobId), nextAttemptMs: null, ...why, later: [] };
}

export function foundQueued(record: JobRecord, waiting: QueuedJobSummary | null): FoundJob {
  const { jobId, channel, status, attempts } = record;
  return {
    jobId,
    channel,
    status,
    attempts,
    createdAtMs: jobTimeMs(jobId),
    finishedAtMs: null,
    nextAttemptMs: waiting?.nextAttemptMs ?? null,
    error: null,
    failureClass: null,
    template: waiting?.template ?? "",
    recipientDomain: recipientDomain(waiting?.recipient ?? ""),
    tags: waiting?.tags ?? [],
    endEventId: null,
    later: [],
  };
}

/** A job that has ended and is not in the event store yet. */
export function foundEnded(record: JobRecord, waiting: QueuedJobSummary | null): FoundJob {
  const { events, began = 0 } = record;
  return {
    ...foundQueued(record, waiting),
    finishedAtMs: endTimeMs(events, began),
    nextAttemptMs: null,
    error: errorIn(record.result),
    failureClass: failureClassOfJob(record),
    later: typesAfterEnd(events, began),
  };
}

function errorIn(result: JobRecord["result"]): string | null {
  const error = result?.["error"];
  return typeof error === "string" ? error : null;
}
