import { isFinal, type QueuedJob } from "../../src/core/job.ts";
import type { Settlement } from "../../src/core/journal.ts";
import type { LedgerRow } from "../../src/core/ledger.ts";
import { limits } from "../../src/core/limits.ts";
import {
  type BoxEntry,
  boxOf,
  bucketOf,
  entryText,
  hasEvent,
  newEvent,
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
    // A job whose record counts this settlement already is left alone.
    if (isFinal(stored.status) || numberOf(stored) > numberOf(settlement.job)) continue;
    if (settlement.kind === "start") {
      start(shard, settlement.job, { ...stored, status: "running", isHeldPending: false }, nowMs);
      continue;
    }
    rows.push(...settleOne(shard, { settlement, stored, nowMs }));
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
    waits: 0,
    entryId: null,
    events: [],
    kept: [],
    result: null,
  };
}

interface Settling {
  readonly settlement: Exclude<Settlement, { kind: "start" }>;
  readonly stored: StoredJob;
  readonly nowMs: number;
}

/** By which a settlement's repeats are known. */
function numberOf({ attempts, waits = 0 }: { readonly attempts: number; readonly waits?: number }): number {
  return attempts + waits;
}

/** The rows of the job's end, and of the reports that waited for it; none when it is to be tried again. */
function settleOne(shard: ShardState, { settlement, stored, nowMs }: Settling): LedgerRow[] {
  const found = shard.boxes.get(boxOf(settlement.job))?.entries.get(settlement.job.entryId);
  const entry = found === undefined ? null : entryAt(found, countOf(settlement));
  // A provider that has reported on a message has it: it is not tried again, nor given up.
  const isReported = stored.kept.length > 0;
  if (settlement.kind === "retry") {
    // After a loss of the last writes its entry may be gone: the job then waits elsewhere, as before this attempt.
    if (entry === null) return [];
    if (isReported) return end(shard, { settlement, stored, nowMs }, SENT);
    park(shard, { settlement, stored, nowMs }, { delayMs: settlement.delayMs, entry, as: settlement.status });
    return [];
  }
  if (isReported && settlement.isGivenUp) return end(shard, { settlement, stored, nowMs }, SENT);
  if (settlement.status === "failed" && entry !== null && bytesOf(entry) <= limits.failedBytesMax) {
    shard.failed.set(entry.jobId, { value: entry, expiresMs: nowMs + limits.failedKeptMs });
  }
  return end(shard, { settlement, stored, nowMs }, settlement);
}

type Ending = Pick<Extract<Settlement, { kind: "final" }>, "status" | "event" | "result">;

const SENT: Ending = { status: "success", event: { type: "sent", result: {} }, result: {} };

interface Count {
  readonly attempts: number;
  readonly waits: number;
}

/** Attempts and waits when the settlement has landed. */
function countOf(settlement: Settling["settlement"]): Count {
  const { attempts, waits = 0 } = settlement.job;
  const isWait = settlement.kind === "retry" && settlement.isUncounted === true;
  return isWait ? { attempts, waits: waits + 1 } : { attempts: attempts + 1, waits };
}

function entryAt({ waits: _before, ...entry }: BoxEntry, { attempts, waits }: Count): BoxEntry {
  return { ...entry, attempts, ...(waits > 0 && { waits }) };
}

interface Parking {
  readonly delayMs: number;
  readonly entry: BoxEntry;
  readonly as: "running" | "pending";
}

function park(shard: ShardState, { settlement, stored, nowMs }: Settling, { delayMs, entry, as }: Parking): void {
  const { tenantId, channel, jobId } = settlement.job;
  const isHeldPending = as === "pending" && stored.status !== "running";
  const status = isHeldPending ? "pending" : "running";
  const record = {
    ...stored,
    tenantId,
    channel,
    ...countOf(settlement),
    status,
    isHeldPending,
    entryId: null,
  } as const;
  storedBucket(shard, bucketOf(jobId), nowMs).jobs.set(jobId, record);
  shard.parked.set(jobId, { box: boxOf(settlement.job), entry });
  shard.later.set(jobId, nowMs + Math.ceil(delayMs));
}

function end(shard: ShardState, { settlement, stored, nowMs }: Settling, ending: Ending): LedgerRow[] {
  const { tenantId, channel, jobId, template } = settlement.job;
  const { status, result } = ending;
  const { attempts: counted, waits } = countOf(settlement);
  const attempts = Math.max(1, counted);
  const written = newEvent(shard, ending.event, nowMs);
  const opening = { ...stored, tenantId, channel, attempts, waits, isHeldPending: false, entryId: null, kept: [] };
  let record: StoredJob = { ...opening, status, events: [...stored.events, written], result };
  const finished = { status, attempts, result, ...(template !== undefined && { template }) };
  const rows: LedgerRow[] = [{ tenantId, jobId, channel, ...written, finished }];
  const bucket = storedBucket(shard, bucketOf(jobId), nowMs);
  for (const report of stored.kept) {
    if (hasEvent(record, report)) continue;
    const event = newEvent(shard, report, nowMs);
    record = { ...record, events: [...record.events, event] };
    rows.push({ tenantId, jobId, channel, ...event, finished: null });
    bucket.recorded = (bucket.recorded ?? 0) - 1;
  }
  bucket.jobs.set(jobId, record);
  return rows;
}

function bytesOf(entry: BoxEntry): number {
  return Buffer.byteLength(entryText(entry, "e"));
}
