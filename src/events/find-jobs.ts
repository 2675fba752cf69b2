import { type EventType, eventTimeMs } from "../domain/event.ts";
import { jobTimeMs } from "../domain/ids.ts";
import { type ChannelName, isFinal, type JobRecord, type JobStatus } from "../domain/job.ts";
import type {
  FinishedJobSummary,
  FinishedJobs,
  JobFilter,
  QueuedJobSummary,
  QueuedJobs,
} from "../domain/job-search.ts";
import { recipientDomain } from "../domain/recipient-index.ts";
import type { TenantRef } from "../domain/tenant.ts";

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
  readonly template: string;
  readonly recipientDomain: string;
}

export interface FoundJobs {
  readonly jobs: readonly FoundJob[];
  /** The cursor of the next page; null: this is the last. */
  readonly moreBelow: string | null;
  /** Not all queued jobs were looked through. */
  readonly isIncomplete: boolean;
}

interface Ports {
  readonly queue: QueuedJobs;
  readonly finishedJobs: FinishedJobs;
}

/**
 * A page of jobs from the queue and the event store, newest first.
 *
 * P1. The queue is read first: a job that moves meanwhile is found in the event store, or in both and shown once.
 * P2. Pages are ranges of job ids, and a job keeps its id: no job is on two pages, and none falls between them.
 */
export async function findJobs(
  { queue, finishedJobs }: Ports,
  tenant: TenantRef,
  filter: JobFilter,
  limit: number,
): Promise<FoundJobs> {
  const { jobs: waiting, isIncomplete } = await queue.waitingJobs(tenant, filter);
  const stored = await finishedJobs.finished(tenant.tenantId, filter, limit);
  const finished = new Map(stored.jobs.map((job) => [job.jobId, job]));
  const queued = new Map(waiting.map((job) => [job.jobId, job]));
  const ids = [...new Set([...finished.keys(), ...queued.keys()])]
    .sort()
    .reverse()
    // Below this id the event store has jobs that were not read.
    .filter((jobId) => stored.moreBelow === null || jobId >= stored.moreBelow);
  const look = async (jobId: string) => {
    const ended = finished.get(jobId);
    if (ended !== undefined && !queued.has(jobId)) return foundFinished(ended);
    const found = await unfinished(queue, tenant, queued.get(jobId));
    // A job that was retried is in both: what the queue says is newer, until the event store has its end.
    return found === null && ended !== undefined ? foundFinished(ended) : found;
  };
  const found: FoundJob[] = [];
  for (let from = 0; from < ids.length; from += TOGETHER) {
    const piece = await Promise.all(ids.slice(from, from + TOGETHER).map(look));
    for (const [at, job] of piece.entries()) {
      if (found.length === limit) return { jobs: found, moreBelow: ids[from + at - 1] ?? null, isIncomplete };
      if (job !== null && (filter.status === null || job.status === filter.status)) found.push(job);
    }
  }
  return { jobs: found, moreBelow: stored.moreBelow, isIncomplete };
}

/** Records that are read at a time. */
const TOGETHER = 100;

async function unfinished(
  queue: QueuedJobs,
  tenant: TenantRef,
  waiting: QueuedJobSummary | undefined,
): Promise<FoundJob | null> {
  const record = waiting === undefined ? null : await queue.job(tenant, waiting.jobId);
  if (record === null || waiting === undefined) return null;
  return isFinal(record.status) ? foundEnded(record, waiting) : foundQueued(record, waiting);
}

export function foundFinished({ result, ...job }: FinishedJobSummary): FoundJob {
  return { ...job, createdAtMs: jobTimeMs(job.jobId), nextAttemptMs: null, error: errorIn(result) };
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
    template: waiting?.template ?? "",
    recipientDomain: recipientDomain(waiting?.recipient ?? ""),
  };
}

const ENDS: ReadonlySet<EventType> = new Set(["sent", "failed", "suppressed"]);

/** A job that has ended and is not in the event store yet. */
export function foundEnded(record: JobRecord, waiting: QueuedJobSummary | null): FoundJob {
  const { events, began = 0 } = record;
  const end = events.find(({ type, eventId }) => eventId > began && ENDS.has(type));
  const finishedAtMs = end === undefined ? null : eventTimeMs(end.eventId);
  return { ...foundQueued(record, waiting), finishedAtMs, nextAttemptMs: null, error: errorIn(record.result) };
}

function errorIn(result: JobRecord["result"]): string | null {
  const error = result?.["error"];
  return typeof error === "string" ? error : null;
}
