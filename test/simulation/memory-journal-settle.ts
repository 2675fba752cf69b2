import { nextEventId } from "../../src/core/event.ts";
import { isFinal, type QueuedJob } from "../../src/core/job.ts";
import type { Settlement } from "../../src/core/journal.ts";
import type { LedgerRow } from "../../src/core/ledger.ts";
import { limits } from "../../src/core/limits.ts";
import {
  type BoxEntry,
  boxOf,
  bucketOf,
  publish,
  type ShardState,
  type StoredJob,
  storedBucket,
  storedJob,
} from "./memory-journal-shard.ts";

/** Writes down what became of the jobs. The caller has checked the lease. */
export function settle(shard: ShardState, settlements: readonly Settlement[], nowMs: number): void {
  const rows: LedgerRow[] = [];
  for (const settlement of settlements) {
    const stored = storedJob(shard, settlement.job.jobId, nowMs) ?? unknownJob(settlement);
    // A job whose record counts this attempt already is left alone.
    if (isFinal(stored.status) || stored.attempts > settlement.job.attempts) continue;
    if (settlement.kind === "start") {
      start(shard, settlement.job, { ...stored, status: "running", isHeldPending: false }, nowMs);
      continue;
    }
    const row = settleOne(shard, { settlement, stored, nowMs });
    if (row !== null) rows.push(row);
  }
  publish(shard, rows, nowMs);
  for (const { kind, job } of settlements) {
    if (kind === "start") continue;
    const entries = shard.boxes.get(boxOf(job))?.entries;
    // An id can be used again once its box was empty: only a job's own entry goes.
    if (entries?.get(job.entryId)?.jobId === job.jobId) entries.delete(job.entryId);
  }
  for (const { job } of settlements) {
    const box = boxOf(job);
    if ((shard.boxes.get(box)?.entries.size ?? 0) > 0) continue;
    shard.boxes.delete(box);
    shard.cursors.delete(box);
    shard.held.delete(box);
  }
}

/** A screened job is running from now on. */
function start(shard: ShardState, { jobId }: QueuedJob, running: StoredJob, nowMs: number): void {
  if (storedJob(shard, jobId, nowMs)?.isHeldPending)
    storedBucket(shard, bucketOf(jobId), nowMs).jobs.set(jobId, running);
}

function unknownJob({ job: { tenantId, channel } }: Settlement): StoredJob {
  return {
    tenantId,
    channel,
    status: "pending",
    isHeldPending: false,
    attempts: 0,
    entryId: null,
    events: [],
    result: null,
  };
}

interface Settling {
  readonly settlement: Exclude<Settlement, { kind: "start" }>;
  readonly stored: StoredJob;
  readonly nowMs: number;
}

/** The row of the job's final event, or null when it is to be tried again. */
function settleOne(shard: ShardState, { settlement, stored, nowMs }: Settling): LedgerRow | null {
  const { job } = settlement;
  const { tenantId, channel, jobId } = job;
  const attempts = job.attempts + 1;
  const opening = { ...stored, tenantId, channel, attempts, isHeldPending: false, entryId: null };
  const write = (record: StoredJob) => storedBucket(shard, bucketOf(jobId), nowMs).jobs.set(jobId, record);
  const found = shard.boxes.get(boxOf(job))?.entries.get(job.entryId);
  const entry = found === undefined ? null : { ...found, attempts };

  if (settlement.kind === "retry") {
    // After a loss of the last writes its entry may be gone: the job then waits elsewhere, as before this attempt.
    if (entry === null) return null;
    const isHeldPending = settlement.status === "pending" && stored.status !== "running";
    write({ ...opening, status: isHeldPending ? "pending" : "running", isHeldPending });
    shard.parked.set(jobId, { box: boxOf(job), entry });
    shard.later.set(jobId, nowMs + Math.ceil(settlement.delayMs));
    return null;
  }

  const { status, event, result } = settlement;
  shard.lastEventId = nextEventId(shard.lastEventId, nowMs);
  const written = { eventId: shard.lastEventId, type: event.type, result: event.result };
  write({ ...opening, status, events: [...stored.events, written], result });
  if (status === "failed" && entry !== null && bytesOf(entry) <= limits.failedBytesMax) {
    shard.failed.set(jobId, { value: entry, expiresMs: nowMs + limits.failedKeptMs });
  }
  return { tenantId, jobId, channel, ...written, finished: { status, attempts, result } };
}

/** Length of the entry as the journal writes it. */
function bytesOf({ jobId, attempts, recipient, payload }: BoxEntry): number {
  return Buffer.byteLength(`${jobId} e${attempts} ${recipient}\n${payload}`);
}
