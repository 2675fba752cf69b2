import type { Clock } from "../../src/domain/clock.ts";
import { isJobId } from "../../src/domain/ids.ts";
import type { BatchPiece, KnownBatch, PieceResult } from "../../src/domain/jobs/batch.ts";
import { isFinal, type JobRecord, type KeptContent, type QueuedJob } from "../../src/domain/jobs/job.ts";
import {
  type AcceptResult,
  type AllowanceCall,
  type CancelListener,
  FENCED,
  type Fenced,
  type Idempotency,
  type JobAddress,
  type JobNews,
  type Lease,
  type LeaseRole,
  type LeaseState,
  type NewJob,
  type Observation,
  type ObserveResult,
  type PullRequest,
  type PullResult,
  type RateState,
  type RecordAnswer,
  type RecordTurn,
  type Settled,
} from "../../src/domain/jobs/queue.ts";
import type { RetryCall, RetryResult, WaitingContent } from "../../src/domain/jobs/retry.ts";
import type { CancelResult, RescheduleResult } from "../../src/domain/jobs/schedule.ts";
import type { Random } from "../../src/domain/random.ts";
import type { TenantRef } from "../../src/domain/tenants/tenant.ts";
import { accept, acceptPiece, admit, batchUnder, endBatch } from "./memory-queue-accept.ts";
import { allow } from "./memory-queue-allow.ts";
import { observe, type Sighting } from "./memory-queue-observe.ts";
import { newsOf, pull } from "./memory-queue-pull.ts";
import { record } from "./memory-queue-record.ts";
import { jobsOf, type References, remember } from "./memory-queue-references.ts";
import { retry } from "./memory-queue-retry.ts";
import { cancel, reschedule } from "./memory-queue-schedule.ts";
import { type SettleCall, settle, settleLent } from "./memory-queue-settle.ts";
import {
  alive,
  type Expiring,
  emptyShard,
  isBeyond,
  type ShardState,
  storedJob,
  tenantQueueName,
} from "./memory-queue-shard.ts";

/** All that a queue holds at one moment. Plain data; what happens later does not reach it. */
export interface QueueSnapshot {
  readonly shards: ReadonlyMap<number, ShardState>;
  /** By role: the heartbeats of each member. */
  readonly members: ReadonlyMap<LeaseRole, ReadonlyMap<string, number>>;
  readonly references: ReadonlyMap<string, Expiring<JobAddress>>;
}

/**
 * The queue as a machine without time, chance or network of its own: every call takes effect and answers at once, at
 * the instant that `clock` names (Redis's own clock; only `nowMs` is read).
 *
 * J1. It answers what the scripts on Redis answer, and holds what they write: a model test runs both side by side.
 * J2. A call changes everything that it has to or, where it answers FENCED, nothing.
 * J3. `restore` forgets all that came after its snapshot, as a Redis does that lost its last writes. Lease tokens hold
 *     chance of their own and so never repeat, even then.
 */
export class QueueState {
  private readonly shards = new Map<number, ShardState>();
  private readonly members = new Map<LeaseRole, Map<string, number>>();
  private readonly references: References = new Map();
  private readonly jobsListeners = new Set<(shard: number) => void>();
  private readonly cancelListeners = new Set<CancelListener>();
  private readonly releaseListeners = new Set<(role: LeaseRole, shard: number) => void>();

  constructor(
    private readonly clock: Pick<Clock, "nowMs">,
    private readonly random: Random,
  ) {}

  admitNow(tenant: TenantRef, requestsPerMinute: number): { limited: boolean; rate: RateState } {
    return admit(this.shard(tenant.shard), { tenant, requestsPerMinute, nowMs: this.clock.nowMs() });
  }

  /** `callerMs`: what its caller's clock shows, by which a scheduled job waits. */
  acceptNow(
    tenant: TenantRef,
    requestsPerMinute: number | null,
    job: NewJob,
    callerMs = this.clock.nowMs(),
  ): AcceptResult {
    const request = { tenant, requestsPerMinute, job, callerMs, nowMs: this.clock.nowMs() };
    return accept(this.shard(tenant.shard), request, () => this.announceMail(tenant.shard));
  }

  acceptPieceNow(tenant: TenantRef, requestsPerMinute: number, piece: BatchPiece): PieceResult {
    const request = { tenant, requestsPerMinute, piece, nowMs: this.clock.nowMs() };
    return acceptPiece(this.shard(tenant.shard), request, () => this.announceMail(tenant.shard));
  }

  batchUnderNow(tenant: TenantRef, idempotency: Idempotency): KnownBatch | null {
    return batchUnder(this.shard(tenant.shard), tenant, idempotency, this.clock.nowMs());
  }

  endBatchNow(tenant: TenantRef, baseId: string, refused: string): void {
    endBatch(this.shard(tenant.shard), baseId, refused);
  }

  retryNow(call: RetryCall, isRepeat = false): RetryResult[] {
    const { shard } = call.tenant;
    const retrying = { ...call, isRepeat, nowMs: this.clock.nowMs() };
    return retry(this.shard(shard), retrying, () => this.announceMail(shard));
  }

  rescheduleNow(
    { tenantId, shard }: TenantRef,
    jobId: string,
    dueMs: number,
    callerMs = this.clock.nowMs(),
  ): RescheduleResult {
    return reschedule(this.shard(shard), { tenantId, jobId, nowMs: this.clock.nowMs() }, { dueMs, callerMs });
  }

  cancelNow({ tenantId, shard }: TenantRef, jobId: string): CancelResult {
    return cancel(this.shard(shard), { tenantId, jobId, nowMs: this.clock.nowMs() }, () => {
      const channel = this.shard(shard).jobs.get(jobId)?.channel ?? "";
      for (const listener of this.cancelListeners) listener(shard, { tenantId, channel }, jobId);
    });
  }

  unrecordedContentsNow({ tenantId, shard }: TenantRef, jobIds: readonly string[]): ReadonlyMap<string, KeptContent> {
    const rows = [...this.shard(shard).outbox.entries.values()].flatMap((entry) => entry.rows);
    const own = rows.filter((row) => row.tenantId === tenantId && jobIds.includes(row.jobId));
    return new Map(own.flatMap(({ jobId, finished }) => (finished?.kept ? [[jobId, finished.kept] as const] : [])));
  }

  waitingContentNow({ tenantId, shard: number }: TenantRef, jobId: string): WaitingContent | null {
    const shard = this.shard(number);
    if (shard.jobs.get(jobId)?.tenantId !== tenantId) return null;
    const queued = [...shard.tenantQueues.values()].flatMap(({ entries }) => [...entries.values()]);
    const entry = shard.parked.get(jobId)?.entry ?? queued.find((one) => one.jobId === jobId);
    if (entry === undefined) return null;
    const { channel, payload, stored } = entry;
    return { channel, payload, ...(stored !== undefined && { stored }) };
  }

  jobNow(tenant: TenantRef, jobId: string): JobRecord | null {
    if (!isJobId(jobId)) return null;
    const shard = this.shard(tenant.shard);
    const stored = storedJob(shard, jobId);
    if (stored === null || stored.tenantId !== tenant.tenantId) return null;
    const { tenantId, channel, attempts, events, result, entryId, isHeldPending, tries, life } = stored;
    const cursor = shard.cursors.get(tenantQueueName({ tenantId, channel }));
    const isLater = entryId?.startsWith("~") === true;
    const isPulled = cursor !== undefined && entryId !== null && !isLater && !isBeyond(entryId, cursor);
    const status = stored.status === "pending" && isPulled && !isHeldPending ? "running" : stored.status;
    const state = { status, attempts, result: isFinal(status) ? (result ?? {}) : null, events };
    const told = { ...(tries !== undefined && { tries }), ...(life !== undefined && { began: life.began }) };
    return { jobId, tenantId, channel, ...state, ...told, ...(isLater && { dueMs: Number(entryId.slice(1)) }) };
  }

  observeNow(tenant: TenantRef, observation: Observation): ObserveResult {
    return this.observeTogetherNow(tenant.shard, [{ tenant, observation }])[0] ?? "unknown";
  }

  /** The events of one call: one entry of the shard's outbox. */
  observeTogetherNow(shard: number, sightings: readonly Sighting[]): ObserveResult[] {
    return observe(this.shard(shard), sightings, this.clock.nowMs());
  }

  leasesNow(role: LeaseRole, shards: number): readonly (LeaseState | null)[] {
    return Array.from({ length: shards }, (_, shard) => this.shard(shard).leases.get(role) ?? null);
  }

  acquireNow(shardNumber: number, role: LeaseRole, _owner: string, seen: LeaseState | null): Lease | null {
    const shard = this.shard(shardNumber);
    const bits = Buffer.from(this.random.fill(new Uint8Array(16))).toString("hex");
    const held = shard.leases.get(role);
    if (held?.token !== seen?.token || held?.renewals !== seen?.renewals) return null;
    shard.epoch += 1;
    const token = `${shard.epoch}-${bits}`;
    shard.leases.set(role, { token, renewals: 0 });
    return { shard: shardNumber, role, token };
  }

  renewNow(lease: Lease): boolean {
    if (!this.holds(lease, lease.role)) return false;
    const { leases } = this.shard(lease.shard);
    leases.set(lease.role, { token: lease.token, renewals: (leases.get(lease.role)?.renewals ?? 0) + 1 });
    return true;
  }

  releaseNow(lease: Lease): void {
    if (!this.holds(lease, lease.role)) return;
    this.shard(lease.shard).leases.delete(lease.role);
    for (const listener of this.releaseListeners) listener(lease.role, lease.shard);
  }

  heartbeatNow(role: LeaseRole, owner: string): ReadonlyMap<string, number> {
    const beats = this.beats(role);
    beats.set(owner, (beats.get(owner) ?? 0) + 1);
    return new Map(beats);
  }

  resignNow(role: LeaseRole, owner: string, beats?: number): void {
    if (beats === undefined || this.beats(role).get(owner) === beats) this.beats(role).delete(owner);
  }

  /** `callerMs`: what the owner's clock shows. */
  pullNow(lease: Lease, request: PullRequest, callerMs = this.clock.nowMs()): PullResult | Fenced {
    if (!this.holds(lease, "dispatcher")) return FENCED;
    return pull(this.shard(lease.shard), request, { nowMs: this.clock.nowMs(), callerMs: Math.floor(callerMs) });
  }

  lookAgainNow(lease: Lease, job: QueuedJob): JobNews | Fenced {
    if (!this.holds(lease, "dispatcher")) return FENCED;
    return newsOf(this.shard(lease.shard), job);
  }

  settleNow(call: SettleCall): Settled | Fenced {
    const { lease, settlements } = call;
    // An owner that lost the lease handed them over nevertheless.
    remember(this.references, settlements, this.clock.nowMs());
    if (!this.holds(lease, "dispatcher")) return FENCED;
    return settle(this.shard(lease.shard), call, this.clock.nowMs());
  }

  settleLentNow(call: SettleCall): void {
    remember(this.references, call.settlements, this.clock.nowMs());
    settleLent(this.shard(call.lease.shard), call, this.clock.nowMs());
  }

  allowNow(lease: Lease, call: AllowanceCall): number | Fenced {
    if (!this.holds(lease, "dispatcher")) return FENCED;
    return allow(this.shard(lease.shard), call, this.clock.nowMs());
  }

  jobsOfNow(references: readonly string[]): readonly (JobAddress | null)[] {
    return jobsOf(this.references, references, this.clock.nowMs());
  }

  recordNow(turns: readonly RecordTurn[]): RecordAnswer {
    return record({
      turns,
      nowMs: this.clock.nowMs(),
      isHeld: ({ lease }) => this.holds(lease, "recorder"),
      shardAt: (number) => this.shard(number),
    });
  }

  onJobs(listener: (shard: number) => void): () => void {
    this.jobsListeners.add(listener);
    return () => this.jobsListeners.delete(listener);
  }

  onCancel(listener: CancelListener): () => void {
    this.cancelListeners.add(listener);
    return () => this.cancelListeners.delete(listener);
  }

  onRelease(listener: (role: LeaseRole, shard: number) => void): () => void {
    this.releaseListeners.add(listener);
    return () => this.releaseListeners.delete(listener);
  }

  snapshot(): QueueSnapshot {
    return structuredClone({ shards: this.shards, members: this.members, references: this.references });
  }

  restore(snapshot: QueueSnapshot): void {
    const { shards, members, references } = structuredClone(snapshot);
    this.shards.clear();
    this.members.clear();
    this.references.clear();
    for (const [key, job] of references) this.references.set(key, job);
    for (const [number, shard] of shards) this.shards.set(number, shard);
    for (const [role, beats] of members) this.members.set(role, new Map(beats));
  }

  /** Removes what is kept for less than a clock may be set back by, as Redis does when the time comes. */
  expire(): void {
    const nowMs = this.clock.nowMs();
    for (const shard of this.shards.values()) {
      shard.estimatedSkew = alive(shard.estimatedSkew ?? undefined, nowMs);
      shard.clocksAhead = alive(shard.clocksAhead ?? undefined, nowMs);
    }
  }

  /** A shard's state, for inspection. */
  look(shard: number): ShardState {
    return this.shard(shard);
  }

  /** The token of the lease that was granted last and not released, or null. */
  holder(shardNumber: number, role: LeaseRole): string | null {
    return this.leaseNow(shardNumber, role)?.token ?? null;
  }

  leaseNow(shardNumber: number, role: LeaseRole): LeaseState | null {
    return this.shard(shardNumber).leases.get(role) ?? null;
  }

  private holds(lease: Lease, role: LeaseRole): boolean {
    return this.holder(lease.shard, role) === lease.token;
  }

  private beats(role: LeaseRole): Map<string, number> {
    const beats = this.members.get(role) ?? new Map<string, number>();
    this.members.set(role, beats);
    return beats;
  }

  private announceMail(shard: number): void {
    for (const listener of this.jobsListeners) listener(shard);
  }

  private shard(number: number): ShardState {
    const shard = this.shards.get(number) ?? emptyShard();
    this.shards.set(number, shard);
    return shard;
  }
}
