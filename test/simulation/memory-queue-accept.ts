import type { BatchItemAnswer, BatchPiece, KnownBatch, PieceResult } from "../../src/domain/jobs/batch.ts";
import type { AcceptResult, Idempotency, NewJob, RateState } from "../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../src/domain/tenants/tenant.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import {
  alive,
  count,
  dueAt,
  enqueue,
  laterPlace,
  payloadBytes,
  type RateWindow,
  type ShardState,
  tenantQueueName,
} from "./memory-queue-shard.ts";

const SLICES = engineLimits.rateWindowMs / engineLimits.rateSliceMs;

/** What a key takes beside its name in Redis, and a batch's key twice. */
const CLAIM_BYTES = 210;
const HOUR_MS = 60 * 60 * 1000;

export interface Request {
  readonly tenant: TenantRef;
  /** Null: the request was counted before. */
  readonly requestsPerMinute: number | null;
  readonly nowMs: number;
}

export interface Accepting extends Request {
  readonly job: NewJob;
  /** What its caller's clock shows. */
  readonly callerMs: number;
}

const UNCOUNTED: RateState = { limit: 0, remaining: 0, resetSeconds: 0 };

/** Counts the request, or says when there is room again. */
export function admit(shard: ShardState, request: Request): { limited: boolean; rate: RateState } {
  const { requestsPerMinute: limit, nowMs } = request;
  if (limit === null) return { limited: false, rate: UNCOUNTED };
  const window = openWindow(shard, request);
  if (totalOf(window) >= limit) dropOldest(window, nowMs);
  const total = totalOf(window);
  if (total >= limit) {
    const rate = { limit, remaining: 0, resetSeconds: secondsUntilRoom(window, nowMs) };
    return { limited: true, rate };
  }
  window.counts.set(window.slice, (window.counts.get(window.slice) ?? 0) + 1);
  return {
    limited: false,
    rate: { limit, remaining: limit - total - 1, resetSeconds: engineLimits.rateWindowMs / 1000 },
  };
}

/** Calls `hint` when a tenant queue becomes ready. */
export function accept(shard: ShardState, request: Accepting, hint: () => void): AcceptResult {
  const { tenant, nowMs, job } = request;
  // A try that was already answered, by its own repeat or by an answer that was lost.
  if (shard.jobs.has(job.jobId)) return { kind: "accepted", jobId: job.jobId, rate: rateOf(shard, request) };
  const { limited, rate } = admit(shard, request);
  if (limited) return { kind: "limited", rate };
  const idempotencyKey = `${tenant.tenantId}:${job.idempotency?.key}`;
  if (job.idempotency !== null) {
    const { fingerprint } = job.idempotency;
    const earlier = alive(shard.idempotency.get(idempotencyKey), nowMs)?.value;
    if (earlier?.fingerprint === fingerprint) return { kind: "replayed", jobId: earlier.jobId, rate };
    if (earlier !== undefined) return { kind: "conflict", rate };
  }
  const what = fullOf(shard, request);
  if (what !== null) return { kind: "queue_full", what, rate };
  if (job.idempotency !== null) {
    const value = { jobId: job.jobId, fingerprint: job.idempotency.fingerprint };
    shard.idempotency.set(idempotencyKey, { value, expiresMs: nowMs + engineLimits.idempotencyKeptMs });
    noteClaim(shard, request, CLAIM_BYTES + redisKeyBytes("idem", idempotencyKey));
  }
  queue(shard, request, hint);
  return { kind: "accepted", jobId: job.jobId, rate };
}

export interface AcceptingPiece {
  readonly tenant: TenantRef;
  readonly requestsPerMinute: number;
  readonly piece: BatchPiece;
  readonly nowMs: number;
}

/** Messages of a batch. */
export function acceptPiece(shard: ShardState, request: AcceptingPiece, hint: () => void): PieceResult {
  const { tenant, piece, nowMs } = request;
  const { key, items } = piece;
  const keptAs = `${tenant.tenantId}:${key?.key}`;
  const claim = key === null ? undefined : alive(shard.idempotency.get(keptAs), nowMs)?.value;
  if (claim !== undefined && claim.fingerprint !== key?.fingerprint) return { kind: "conflict" };
  if (claim !== undefined && claim.jobId !== key?.baseId) return { kind: "taken", baseId: claim.jobId };
  const batch = claim === undefined ? undefined : shard.batches.get(claim.jobId);
  const queued = new Set(alive(batch, nowMs)?.value.queued);
  const answers = items.map(({ index, job }, i): BatchItemAnswer => {
    const requestsPerMinute = i === 0 && piece.isFirstCounted ? null : request.requestsPerMinute;
    const one = { tenant, requestsPerMinute, nowMs };
    if (key !== null && queued.has(index))
      return { kind: "accepted", jobId: job?.jobId ?? "", rate: rateOf(shard, one), isEarlier: true };
    if (job === null) {
      const { limited, rate } = admit(shard, one);
      return limited ? { kind: "limited", rate } : { kind: "admitted", rate };
    }
    // It has no key of its own.
    const answer = accept(
      shard,
      { ...one, callerMs: nowMs, job: { ...job, idempotency: null } },
      hint,
    ) as BatchItemAnswer;
    if (answer.kind === "accepted") queued.add(index);
    return answer;
  });
  if (key !== null && queued.size > (alive(batch, nowMs)?.value.queued.length ?? 0)) {
    const expiresMs = nowMs + engineLimits.idempotencyKeptMs;
    const value = { jobId: key.baseId, fingerprint: key.fingerprint };
    if (claim === undefined) {
      shard.idempotency.set(keptAs, { value, expiresMs });
      const bytes = redisKeyBytes("idem", keptAs) + redisKeyBytes("batch", key.baseId);
      noteClaim(shard, request, 2 * CLAIM_BYTES + bytes);
    }
    const refused = alive(batch, nowMs)?.value.refused ?? null;
    const kept = { value: { queued: [...queued], refused }, expiresMs: expiresMs + engineLimits.jobKeptMs };
    shard.batches.set(key.baseId, kept);
  }
  return { kind: "answered", answers };
}

function redisKeyBytes(what: "idem" | "batch", name: string): number {
  return Buffer.byteLength(`wb:{s00}:${what}:${name}`);
}

function noteClaim(shard: ShardState, { tenant, nowMs }: Pick<Request, "tenant" | "nowMs">, bytes: number): void {
  const known = alive(shard.claims.get(tenant.tenantId), nowMs);
  const hours = new Map(known?.value);
  const hour = Math.floor(nowMs / HOUR_MS);
  const isNewHour = !hours.has(hour);
  hours.set(hour, (hours.get(hour) ?? 0) + bytes);
  if (!isNewHour && known !== null) {
    shard.claims.set(tenant.tenantId, { ...known, value: hours });
    return;
  }
  const first = Math.floor((nowMs - engineLimits.idempotencyKeptMs) / HOUR_MS);
  for (const each of hours.keys()) if (each < first) hours.delete(each);
  shard.claims.set(tenant.tenantId, { value: hours, expiresMs: nowMs + engineLimits.idempotencyKeptMs + 2 * HOUR_MS });
}

export function batchUnder(
  shard: ShardState,
  { tenantId }: TenantRef,
  { key, fingerprint }: Idempotency,
  nowMs: number,
): KnownBatch | null {
  const claim = alive(shard.idempotency.get(`${tenantId}:${key}`), nowMs)?.value;
  if (claim === undefined) return null;
  const { queued = [], refused = null } = alive(shard.batches.get(claim.jobId), nowMs)?.value ?? {};
  const ranges = queued.map((index) => [index, index] as const);
  return { isSame: claim.fingerprint === fingerprint, baseId: claim.jobId, queued: ranges, refused };
}

export function endBatch(shard: ShardState, baseId: string, refused: string): void {
  const batch = shard.batches.get(baseId);
  if (batch !== undefined) shard.batches.set(baseId, { ...batch, value: { ...batch.value, refused } });
}

/** What the tenant's share of the queue has no room for. */
function fullOf(shard: ShardState, { tenant, job }: Accepting): "jobs" | "bytes" | null {
  const { jobs, bytes } = shard.load.get(tenant.tenantId) ?? { jobs: 0, bytes: 0 };
  if (job.quota === undefined) return null;
  if (jobs + 1 > job.quota.jobs) return "jobs";
  return bytes + payloadBytes(job) > job.quota.bytes ? "bytes" : null;
}

function queue(shard: ShardState, { tenant, job, callerMs, nowMs }: Accepting, hint: () => void): void {
  const {
    jobId,
    channel,
    recipient,
    payload,
    needsScreening,
    template,
    stored,
    traceparent,
    tags,
    topic,
    dueMs,
    fallback,
  } = job;
  const tenantQueue = tenantQueueName({ tenantId: tenant.tenantId, channel });
  const entry = {
    jobId,
    channel,
    attempts: 0,
    recipient,
    payload,
    ...(needsScreening && { needsScreening }),
    ...(template !== undefined && { template }),
    ...(stored !== undefined && { stored }),
    ...(traceparent !== undefined && { traceparent }),
    ...(tags !== undefined && { tags }),
    ...(topic !== undefined && { topic }),
    ...(dueMs !== undefined && { dueMs }),
    ...(fallback !== undefined && { fallback }),
  };
  const later = dueMs === undefined ? null : dueAt(shard, { ...job, dueMs }, callerMs, nowMs);
  const entryId = later !== null ? laterPlace(later.timeMs) : enqueue(shard, tenantQueue, entry, nowMs);
  count(shard, tenant.tenantId, 1, payloadBytes(job));
  shard.jobs.set(jobId, {
    tenantId: tenant.tenantId,
    channel,
    status: "pending",
    isHeldPending: needsScreening === true,
    attempts: 0,
    waits: 0,
    entryId,
    events: [],
    kept: [],
    result: null,
  });
  if (later !== null) {
    shard.parked.set(jobId, { tenantQueue, entry });
    shard.later.set(jobId, later.laterMs);
  } else if (!shard.ready.has(tenantQueue)) {
    shard.ready.add(tenantQueue);
    hint();
  }
}

/** What the window says while nothing is counted. */
function rateOf(shard: ShardState, request: Request): RateState {
  const { requestsPerMinute: limit } = request;
  if (limit === null) return UNCOUNTED;
  const remaining = Math.max(0, limit - totalOf(openWindow(shard, request)));
  return { limit, remaining, resetSeconds: engineLimits.rateWindowMs / 1000 };
}

/** The tenant's window as of now, without the slices that have left it. */
function openWindow(shard: ShardState, { tenant, nowMs }: Request): RateWindow {
  const now = Math.floor(nowMs / engineLimits.rateSliceMs);
  const window = shard.windows.get(tenant.tenantId) ?? { slice: now, counts: new Map<number, number>() };
  shard.windows.set(tenant.tenantId, window);
  const wasSetFarBack = now < window.slice - SLICES;
  if (wasSetFarBack) window.counts.clear();
  // A clock that was set back a little goes on counting where it was.
  if (wasSetFarBack || now > window.slice) window.slice = now;
  for (const slice of window.counts.keys()) if (slice < window.slice - SLICES) window.counts.delete(slice);
  return window;
}

function totalOf(window: RateWindow): number {
  let total = 0;
  for (const count of window.counts.values()) total += count;
  return total;
}

function secondsUntilRoom(window: RateWindow, nowMs: number): number {
  const oldest = Math.min(window.slice, ...window.counts.keys());
  const total = totalOf(window);
  const isNow = oldest === Math.floor(nowMs / engineLimits.rateSliceMs);
  if (isNow && (window.last?.slice !== oldest || window.last.total !== total)) {
    window.last = { slice: oldest, total, atMs: nowMs };
  }
  const roomAtMs = (oldest + SLICES + 1) * engineLimits.rateSliceMs;
  return Math.max(1, Math.ceil(Math.min(roomAtMs - nowMs, engineLimits.rateWindowMs) / 1000));
}

/** The oldest slice leaves before it is past as a whole, if its last request is known to have left the window. */
function dropOldest(window: RateWindow, nowMs: number): void {
  const oldest = Math.floor(nowMs / engineLimits.rateSliceMs) - SLICES;
  const { last } = window;
  if (last?.slice === oldest && nowMs >= last.atMs + engineLimits.rateWindowMs) window.counts.delete(oldest);
}
