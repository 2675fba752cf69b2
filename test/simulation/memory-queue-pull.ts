import type { QueuedJob } from "../../src/domain/jobs/job.ts";
import type { JobNews, PullRequest, PullResult, TenantQueuePull } from "../../src/domain/jobs/queue.ts";
import { limits } from "../../src/domain/limits.ts";
import { suppressionName } from "../../src/domain/tenants/suppressions.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import {
  alive,
  enqueue,
  entryText,
  isBeyond,
  isWithProvider,
  middleOf,
  type QueueEntry,
  type ShardState,
  storedJob,
  tenantQueueName,
  tenantQueueOf,
} from "./memory-queue-shard.ts";

const SLACK_MS = engineLimits.shardTimeSlackMs;
const ESTIMATE_MS = 45_000;
const FOLLOW_AFTER_MS = 10 * 60_000;
const GAP_MS = 60_000;
const NOT_YET_MS = 60_000;

/** The queue's and the owner's. */
interface Clocks {
  readonly nowMs: number;
  readonly callerMs: number;
}

/** Hands the owner its next jobs. The caller has checked the lease. */
export function pull(shard: ShardState, request: PullRequest, clocks: Clocks): PullResult {
  const { timeMs, estimatedSkewMs, isNew } = agree(shard, request, clocks);
  if (isNew) renewLoans(shard, timeMs);
  if (request.survey) for (const tenantQueue of shard.held) shard.ready.add(tenantQueue);
  const { moved, more } = moveDue(shard, { timeMs, clocks, bytesMax: request.bytesMax });
  const ready = [...shard.ready].slice(0, engineLimits.pullReadyMax);
  for (const tenantQueue of ready) {
    shard.ready.delete(tenantQueue);
    shard.held.add(tenantQueue);
  }
  const call = { bytes: 0, bytesMax: request.bytesMax, entries: 0 };
  const tenantQueues = request.tenantQueues.map((asked) => readTenantQueue(shard, asked, call));
  const next = dueJobs(shard)[0];
  return {
    tenantQueues,
    ready: ready.map(tenantQueueOf),
    more: more || moved === engineLimits.pullDueMax || ready.length === engineLimits.pullReadyMax,
    nextDueMs: next === undefined ? null : Math.max(0, next[1] - timeMs),
    shardTimeMs: timeMs,
    estimatedSkewMs,
  };
}

/** What a pull would say of a job now. */
export function newsOf(shard: ShardState, job: QueuedJob): JobNews {
  const stored = storedJob(shard, job.jobId);
  if (stored !== null && isWithProvider(stored)) return { suppressed: null, isReported: true };
  return suppressedFor(shard, job.tenantId, job);
}

function suppressedFor(shard: ShardState, tenantId: string, { recipient, topic }: Suppressible): JobNews {
  const list = shard.suppressed.get(tenantId);
  const forAll = list?.get(recipient);
  if (forAll !== undefined || topic === undefined) return { suppressed: forAll ?? null };
  const forTopic = list?.get(suppressionName(recipient, topic));
  return forTopic === undefined ? { suppressed: null } : { suppressed: forTopic, suppressedTopic: topic };
}

type Suppressible = Pick<QueueEntry, "recipient" | "topic">;

/** The shard's time, which is never behind the owner's reckoning, and no further ahead of it than calls take. */
function agree(
  shard: ShardState,
  { shardTimeMs: reckonedMs, confirmedSkewMs }: PullRequest,
  { nowMs, callerMs }: Clocks,
): { readonly timeMs: number; readonly estimatedSkewMs: number | null; readonly isNew: boolean } {
  const reckoned = reckonedMs === null ? null : Math.round(reckonedMs);
  // A call that comes late reckons with a time that has passed, and agrees on nothing.
  if (shard.agreedMs !== null && reckoned !== null && reckoned < shard.agreedMs - SLACK_MS)
    return { timeMs: shard.agreedMs, estimatedSkewMs: null, isNew: false };
  // Who reckons with nothing yet goes on from the last pull at the earliest, and from what its predecessor left unsaid.
  const leftMs = reckoned === null ? alive(shard.estimatedSkew ?? undefined, nowMs)?.value : undefined;
  const knownMs = nowMs + (confirmedSkewMs ?? leftMs ?? shard.skewMs);
  const newMs = knownMs - callerMs > SLACK_MS ? callerMs : knownMs;
  const timeMs = reckoned === null ? Math.max(newMs, shard.agreedMs ?? newMs) : Math.max(knownMs, reckoned);
  // It may be the clock that was set forward, or this call that was long on its way: the owner says in its next one.
  const isBehind = reckoned !== null && timeMs - reckoned > SLACK_MS;
  const clocksMs = Math.min(nowMs, callerMs);
  const isStep = follows(shard, { timeMs: isBehind ? reckoned : timeMs, clocksMs, nowMs });
  if (isStep) {
    shard.skewMs = clocksMs - nowMs;
    shard.agreedMs = clocksMs;
    shard.estimatedSkew = null;
    return { timeMs: clocksMs, estimatedSkewMs: null, isNew: true };
  }
  shard.skewMs = timeMs - nowMs;
  shard.agreedMs = isBehind ? reckoned : timeMs;
  const estimatedSkewMs = isBehind ? reckoned - nowMs : null;
  shard.estimatedSkew = estimatedSkewMs === null ? null : { value: estimatedSkewMs, expiresMs: nowMs + ESTIMATE_MS };
  return { timeMs: shard.agreedMs, estimatedSkewMs, isNew: reckoned === null };
}

/** The shard's time follows clocks that have been ahead of it for minutes, and none that is ahead for a moment. */
function follows(
  shard: ShardState,
  { timeMs, clocksMs, nowMs }: { readonly timeMs: number; readonly clocksMs: number; readonly nowMs: number },
): boolean {
  if (clocksMs - timeMs <= limits.clocksApartMs) return false;
  const known = alive(shard.clocksAhead ?? undefined, nowMs)?.value;
  const isGoingOn = known !== undefined && timeMs - known.lastMs <= GAP_MS;
  const sinceMs = isGoingOn ? known.sinceMs : timeMs;
  shard.clocksAhead = { value: { sinceMs, lastMs: timeMs }, expiresMs: nowMs + GAP_MS };
  return timeMs - sinceMs >= FOLLOW_AFTER_MS;
}

/** Earliest first. */
function dueJobs({ later }: ShardState): [string, number][] {
  return [...later].sort(([a, aMs], [b, bMs]) => aMs - bMs || (a < b ? -1 : 1));
}

interface Moving {
  readonly timeMs: number;
  readonly clocks: Clocks;
  readonly bytesMax: number;
}

/** To a new owner a loan begins anew: how much of it is left is not known. */
function renewLoans(shard: ShardState, timeMs: number): void {
  for (const [jobId, { lentForMs }] of shard.parked) {
    const dueMs = shard.later.get(jobId);
    if (lentForMs === undefined || dueMs === undefined) continue;
    shard.later.set(jobId, Math.max(dueMs, timeMs + lentForMs));
  }
}

/** Moves due jobs back into their tenant queues, up to the bytes of a call. */
function moveDue(shard: ShardState, { timeMs, clocks, bytesMax }: Moving): { moved: number; more: boolean } {
  const due = dueJobs(shard).filter(([, dueMs]) => dueMs <= timeMs);
  const clockMs = middleOf(clocks.nowMs, clocks.callerMs, timeMs);
  let moved = 0;
  let bytes = 0;
  for (const [jobId] of due.slice(0, engineLimits.pullDueMax)) {
    if (bytes >= bytesMax) return { moved, more: true };
    const parked = shard.parked.get(jobId);
    const stored = storedJob(shard, jobId);
    const isScheduled = stored?.entryId?.startsWith("~") === true;
    const earlyMs = isScheduled ? Number(stored.entryId?.slice(1)) - clockMs : 0;
    if (parked !== undefined && earlyMs > 0) {
      shard.later.set(jobId, Math.round(timeMs + Math.min(earlyMs, Math.max(NOT_YET_MS, earlyMs / 8))));
      moved += 1;
      continue;
    }
    shard.parked.delete(jobId);
    shard.later.delete(jobId);
    moved += 1;
    if (parked === undefined) continue;
    const entryId = enqueue(shard, parked.tenantQueue, parked.entry, clocks.nowMs);
    if (isScheduled) shard.jobs.set(jobId, { ...stored, entryId });
    shard.ready.add(parked.tenantQueue);
    bytes += bytesOf(parked.entry);
  }
  return { moved, more: false };
}

/** What a call has read. */
interface Call {
  bytes: number;
  readonly bytesMax: number;
  entries: number;
}

function readTenantQueue(shard: ShardState, { tenantQueue, after, entriesMax, bytesMax }: TenantQueuePull, call: Call) {
  const name = tenantQueueName(tenantQueue);
  const behind = [...(shard.tenantQueues.get(name)?.entries ?? [])].filter(
    ([id]) => after === null || isBeyond(id, after),
  );
  const read = entriesWithin(behind.slice(0, entriesMax), bytesMax, call);
  if (behind.length === 0 && after === null && call.bytes < call.bytesMax) shard.held.delete(name);
  const cursor = shard.cursors.get(name) ?? null;
  const jobs = read.map(([entryId, entry]) => {
    const stop = suppressedFor(shard, tenantQueue.tenantId, entry);
    const isFirstPull = cursor === null || isBeyond(entryId, cursor);
    const wasOut = !isFirstPull || entry.attempts > 0 || entry.waits !== undefined;
    const stored = wasOut ? storedJob(shard, entry.jobId) : null;
    const retried = stored?.life === undefined ? {} : { retriedAtMs: stored.life.atMs };
    const place = { tenantId: tenantQueue.tenantId, entryId, ...retried };
    const isReported = stored !== null && isWithProvider(stored);
    if (isReported) return { ...entry, ...place, suppressed: null, isReported } as const;
    if (stop.suppressed !== null && isFirstPull) holdPending(shard, entry.jobId);
    return { ...entry, ...place, ...stop };
  });
  const last = read.at(-1)?.[0];
  if (last !== undefined && (cursor === null || isBeyond(last, cursor))) shard.cursors.set(name, last);
  const more = behind.length > read.length || (read.length === 0 && call.bytes >= call.bytesMax);
  return { tenantQueue, jobs, more };
}

function entriesWithin(entries: readonly [string, QueueEntry][], bytesMax: number, call: Call) {
  const read: [string, QueueEntry][] = [];
  let tenantQueueBytes = 0;
  for (const [id, entry] of entries) {
    const bytes = bytesOf(entry);
    if (call.entries > 0 && call.bytes + bytes > call.bytesMax) break;
    if (read.length > 0 && tenantQueueBytes + bytes > bytesMax) break;
    read.push([id, entry]);
    tenantQueueBytes += bytes;
    call.bytes += bytes;
    call.entries += 1;
  }
  return read;
}

function bytesOf(entry: QueueEntry): number {
  return Buffer.byteLength(entryText(entry, "x"));
}

/** A job that is suppressed at its first pull never ran. */
function holdPending(shard: ShardState, jobId: string): void {
  const job = storedJob(shard, jobId);
  if (job?.status === "pending") shard.jobs.set(jobId, { ...job, isHeldPending: true });
}
