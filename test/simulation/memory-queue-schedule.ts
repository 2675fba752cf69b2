import { isFinal } from "../../src/domain/jobs/job.ts";
import type { CancelResult, RescheduleResult } from "../../src/domain/jobs/schedule.ts";
import {
  agreedTimeMs,
  count,
  dueAt,
  isBeyond,
  isWithProvider,
  laterPlace,
  newEvent,
  payloadBytes,
  publish,
  type QueueEntry,
  type ShardState,
  type StoredJob,
  storedJob,
  tenantQueueName,
  withKept,
} from "./memory-queue-shard.ts";

interface Concerning {
  readonly tenantId: string;
  readonly jobId: string;
  readonly nowMs: number;
}

export function reschedule(
  shard: ShardState,
  { tenantId, jobId, nowMs }: Concerning,
  { dueMs, callerMs }: { readonly dueMs: number; readonly callerMs: number },
): RescheduleResult {
  const job = storedJob(shard, jobId);
  if (job === null || job.tenantId !== tenantId) return "unknown";
  if (isFinal(job.status)) return "ended";
  const parked = shard.parked.get(jobId);
  if (parked === undefined || job.entryId?.startsWith("~") !== true) return "begun";
  const hasDue = parked.entry.dueMs !== undefined;
  shard.jobs.set(jobId, { ...job, entryId: laterPlace(dueMs) });
  shard.parked.set(jobId, { ...parked, entry: { ...parked.entry, ...(hasDue && { dueMs }) } });
  shard.later.set(jobId, dueAt(shard, { dueMs }, callerMs, nowMs)?.laterMs ?? agreedTimeMs(shard, nowMs));
  return "moved";
}

/** Calls `ask` where the shard's owner may have the job. */
export function cancel(shard: ShardState, concerning: Concerning, ask: () => void): CancelResult {
  const { tenantId, jobId, nowMs } = concerning;
  const job = storedJob(shard, jobId);
  if (job === null || job.tenantId !== tenantId) return "unknown";
  if (isFinal(job.status)) {
    return job.status === "suppressed" && job.result?.["reason"] === "canceled" ? "canceled" : "ended";
  }
  if (isWithProvider(job) || shard.parked.get(jobId)?.lentUnder !== undefined) return "begun";
  const entry = takeParked(shard, jobId) ?? takeQueued(shard, job, jobId);
  if (entry === null) {
    ask();
    return "asked";
  }
  const { channel, waits } = job;
  const attempts = job.attempts + 1;
  const result = { reason: "canceled" };
  const event = newEvent(shard, { type: "suppressed", result }, nowMs);
  const { template, recipient, tags } = entry;
  const finished = {
    status: "suppressed",
    attempts,
    result,
    ...(template !== undefined && { template }),
    ...(recipient !== "" && { recipient }),
    ...(job.tries !== undefined && { tries: job.tries }),
    ...(job.life !== undefined && { began: job.life.began }),
    ...(tags !== undefined && { tags }),
  } as const;
  const ended = { status: "suppressed", isHeldPending: false, attempts, waits, entryId: null, result } as const;
  const all = { ended: { ...job, ...ended, events: [...job.events, event] }, jobId, kept: job.kept };
  const told = withKept(shard, all, nowMs);
  shard.jobs.set(jobId, told.job);
  count(shard, tenantId, -1, payloadBytes(entry));
  publish(shard, [{ tenantId, jobId, channel, ...event, finished }, ...told.rows], nowMs);
  return "canceled";
}

function takeParked(shard: ShardState, jobId: string): QueueEntry | null {
  const parked = shard.parked.get(jobId);
  shard.parked.delete(jobId);
  shard.later.delete(jobId);
  return parked?.entry ?? null;
}

/** Null: somebody may have pulled it. */
function takeQueued(shard: ShardState, { entryId, tenantId, channel }: StoredJob, jobId: string): QueueEntry | null {
  const name = tenantQueueName({ tenantId, channel });
  const queue = shard.tenantQueues.get(name);
  const entry = entryId === null ? undefined : queue?.entries.get(entryId);
  const cursor = shard.cursors.get(name);
  if (entryId === null || queue === undefined || entry?.jobId !== jobId) return null;
  if (cursor !== undefined && !isBeyond(entryId, cursor)) return null;
  queue.entries.delete(entryId);
  if (queue.entries.size === 0) {
    shard.tenantQueues.delete(name);
    shard.cursors.delete(name);
    shard.held.delete(name);
  }
  return entry;
}
