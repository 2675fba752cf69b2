import type { StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import { type Attempt, isFinal, type QueuedJob } from "../../src/domain/jobs/job.ts";
import type { Lease, Settled, Settlement } from "../../src/domain/jobs/queue.ts";
import { limits } from "../../src/domain/limits.ts";
import { keepContent } from "./memory-queue-keep.ts";
import {
  count,
  isWithProvider,
  newEvent,
  payloadBytes,
  publish,
  type QueueEntry,
  type ShardState,
  type StoredJob,
  shardTimeMs,
  storedJob,
  tenantQueueName,
  withKept,
} from "./memory-queue-shard.ts";

/** The settlements of a lease, and the shard's time as its owner estimates it. */
export interface SettleCall {
  readonly lease: Lease;
  readonly settlements: readonly Settlement[];
  readonly shardTimeMs: number | null;
}

/** Writes the jobs' outcomes. The caller has checked the lease. */
export function settle(shard: ShardState, call: SettleCall, nowMs: number): Settled {
  const { settlements } = call;
  const { token } = call.lease;
  const timeMs = timeOf(shard, call, nowMs);
  const rows: StoredEventRow[] = [];
  const reported = new Set<string>();
  for (const settlement of settlements) {
    const stored = unsettled(shard, settlement);
    if (stored === null) continue;
    if (settlement.kind === "start") {
      start(shard, settlement.job, { ...stored, status: "running", isHeldPending: false });
      continue;
    }
    const found = shard.tenantQueues.get(tenantQueueName(settlement.job))?.entries.get(settlement.job.entryId) ?? null;
    const settling = { settlement, stored, found, nowMs, timeMs };
    const own =
      settlement.kind === "lend"
        ? lend(shard, settling, { forMs: settlement.forMs, token })
        : settleOne(shard, settling);
    const saysItself = settlement.kind === "final" && settlement.isGivenUp !== true;
    if (own[0]?.finished?.status === "success" && !saysItself) reported.add(settlement.job.jobId);
    rows.push(...own);
  }
  publish(shard, rows, nowMs);
  for (const { kind, job } of settlements) {
    if (kind === "start") continue;
    const entries = shard.tenantQueues.get(tenantQueueName(job))?.entries;
    // Where the last writes were forgotten, an id can have been used again: only a job's own entry goes.
    if (entries?.get(job.entryId)?.jobId === job.jobId) entries.delete(job.entryId);
  }
  for (const { job } of settlements) {
    const tenantQueue = tenantQueueName(job);
    if ((shard.tenantQueues.get(tenantQueue)?.entries.size ?? 0) > 0) continue;
    shard.tenantQueues.delete(tenantQueue);
    shard.cursors.delete(tenantQueue);
    shard.held.delete(tenantQueue);
  }
  return reported.size === 0 ? "settled" : reported;
}

/** Writes the outcomes of jobs that were lent under the token and still wait under it. */
export function settleLent(shard: ShardState, call: SettleCall, nowMs: number): void {
  const { token } = call.lease;
  const timeMs = timeOf(shard, call, nowMs);
  const rows: StoredEventRow[] = [];
  for (const settlement of call.settlements) {
    if (settlement.kind === "start") continue;
    const { jobId } = settlement.job;
    const parked = shard.parked.get(jobId);
    const stored = unsettled(shard, settlement);
    if (parked === undefined || parked.lentUnder !== token || stored === null) continue;
    shard.parked.delete(jobId);
    shard.later.delete(jobId);
    const settling = { settlement, stored, found: parked.entry, nowMs, timeMs };
    const { kind } = settlement;
    rows.push(
      ...(kind === "lend" ? lend(shard, settling, { forMs: settlement.forMs, token }) : settleOne(shard, settling)),
    );
  }
  publish(shard, rows, nowMs);
}

/** Parked jobs are due by this time. A late call, or a former owner, may carry an estimate that has passed. */
function timeOf(shard: ShardState, { shardTimeMs: reckonedMs }: SettleCall, nowMs: number): number {
  const timeMs = shardTimeMs(shard, nowMs);
  return reckonedMs === null ? timeMs : Math.max(Math.round(reckonedMs), shard.agreedMs ?? timeMs);
}

/** The settlement's job as it is stored; null where its record counts this settlement already. */
function unsettled(shard: ShardState, settlement: Settlement): StoredJob | null {
  const stored = storedJob(shard, settlement.job.jobId) ?? unknownJob(settlement);
  return isFinal(stored.status) || numberOf(stored) > numberOf(settlement.job) ? null : stored;
}

/** A screened job is running from now on. */
function start(shard: ShardState, { jobId }: QueuedJob, running: StoredJob): void {
  if (storedJob(shard, jobId)?.isHeldPending) shard.jobs.set(jobId, running);
}

interface Loan {
  readonly forMs: number;
  readonly token: string;
}

/** The job waits, its attempts as they are, for what becomes of the one that is in flight. */
function lend(shard: ShardState, lending: Settling, { forMs, token }: Loan): StoredEventRow[] {
  const { settlement, stored, found } = lending;
  if (found === null) return [];
  const { jobId, attempts, waits = 0 } = settlement.job;
  if (isWithProvider(stored)) return end(shard, lending, SENT);
  // It is seen to have been out, also before anything of it counts.
  const entry = { ...entryAt(found, { attempts, waits }), waits };
  const as = stored.isHeldPending ? "pending" : "running";
  park(shard, lending, { delayMs: forMs, entry, as });
  shard.parked.set(jobId, {
    tenantQueue: tenantQueueName(settlement.job),
    entry,
    lentUnder: token,
    lentForMs: Math.ceil(forMs),
  });
  return [];
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
  /** Its entry, where it is. */
  readonly found: QueueEntry | null;
  readonly nowMs: number;
  /** The shard's. */
  readonly timeMs: number;
}

/** By which a settlement's repeats are known. */
function numberOf({ attempts, waits = 0 }: { readonly attempts: number; readonly waits?: number }): number {
  return attempts + waits;
}

/** The rows of the job's end, and of the reports that waited for it; none when it is to be tried again. */
function settleOne(shard: ShardState, settling: Settling): StoredEventRow[] {
  const { settlement, stored, found } = settling;
  const entry = found === null ? null : entryAt(found, countOf(settlement));
  // A provider that has reported on a message has it: it is not tried again, nor given up.
  const isReported = isWithProvider(stored);
  if (settlement.kind === "retry") {
    // After a loss of the last writes its entry may be gone: the job then waits elsewhere, as before this attempt.
    if (entry === null) return [];
    if (isReported) return end(shard, settling, SENT);
    park(shard, settling, { delayMs: settlement.delayMs, entry, as: settlement.status });
    return [];
  }
  if (settlement.kind !== "final") return [];
  return end(shard, settling, isReported && settlement.isGivenUp ? SENT : settlement);
}

type Ending = Pick<Extract<Settlement, { kind: "final" }>, "status" | "event" | "result" | "attempt">;

function triesWith({ tries = [] }: StoredJob, attempt: Attempt | undefined): readonly Attempt[] {
  return attempt === undefined ? tries : [...tries, attempt].slice(-limits.attemptsKeptMax);
}

const SENT: Ending = { status: "success", event: { type: "sent", result: {} }, result: {} };

interface Count {
  readonly attempts: number;
  readonly waits: number;
}

/** Attempts and waits after the settlement. A loan counts neither: its delivery may come to nothing. */
function countOf(settlement: Settling["settlement"]): Count {
  const { attempts, waits = 0 } = settlement.job;
  if (settlement.kind === "lend") return { attempts, waits };
  const isWait = settlement.kind === "retry" && settlement.isUncounted === true;
  return isWait ? { attempts, waits: waits + 1 } : { attempts: attempts + 1, waits };
}

function entryAt({ waits: _before, ...entry }: QueueEntry, { attempts, waits }: Count): QueueEntry {
  return { ...entry, attempts, ...(waits > 0 && { waits }) };
}

interface Parking {
  readonly delayMs: number;
  readonly entry: QueueEntry;
  readonly as: "running" | "pending";
}

function park(shard: ShardState, { settlement, stored, timeMs }: Settling, { delayMs, entry, as }: Parking): void {
  const { tenantId, channel, jobId } = settlement.job;
  const isHeldPending = as === "pending" && stored.status !== "running";
  const status = isHeldPending ? "pending" : "running";
  const { attempts, waits = 0 } = entry;
  const tries = triesWith(stored, settlement.kind === "retry" ? settlement.attempt : undefined);
  const record = {
    ...stored,
    ...(tries.length > 0 && { tries }),
    tenantId,
    channel,
    attempts,
    waits,
    status,
    isHeldPending,
    entryId: null,
  } as const;
  shard.jobs.set(jobId, record);
  shard.parked.set(jobId, { tenantQueue: tenantQueueName(settlement.job), entry });
  shard.later.set(jobId, timeMs + Math.ceil(delayMs));
}

function end(shard: ShardState, settling: Settling, ending: Ending): StoredEventRow[] {
  const { settlement, stored, nowMs } = settling;
  const { tenantId, channel, jobId, template, recipient, tags } = settlement.job;
  const { status, result, attempt } = ending;
  const tries = triesWith(stored, attempt);
  const { attempts: counted, waits } = countOf(settlement);
  const attempts = Math.max(1, counted);
  const written = newEvent(shard, ending.event, nowMs);
  const opening = { ...stored, tenantId, channel, attempts, waits, isHeldPending: false, entryId: null, kept: [] };
  const ended: StoredJob = { ...opening, status, events: [...stored.events, written], result };
  const finished = {
    status,
    attempts,
    result,
    ...(template !== undefined && { template }),
    ...(recipient !== "" && { recipient }),
    ...(tries.length > 0 && { tries }),
    ...(stored.life !== undefined && { began: stored.life.began }),
    ...(tags !== undefined && { tags }),
    ...(status === "failed" && keepContent(shard, { ...settling, job: settlement.job }, attempts + waits)),
  };
  const { job, rows } = withKept(shard, { ended, jobId, kept: stored.kept }, nowMs);
  // What nobody remembers was not counted.
  if (shard.jobs.has(jobId)) count(shard, tenantId, -1, payloadBytes(settlement.job));
  shard.jobs.set(jobId, job);
  return [{ tenantId, jobId, channel, ...written, finished }, ...rows];
}
