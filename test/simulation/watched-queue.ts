import type { BatchOutcome, BatchPiece, PieceResult } from "../../src/domain/jobs/batch.ts";
import { countsFromMessage } from "../../src/domain/jobs/fallback.ts";
import { isFinal, type QueuedJob } from "../../src/domain/jobs/job.ts";
import {
  type AcceptResult,
  type AllowanceCall,
  FENCED,
  type Fenced,
  type Idempotency,
  type JobNews,
  type Lease,
  type LeaseRole,
  type LeaseState,
  type NewJob,
  type Observation,
  type ObserveResult,
  type PullRequest,
  type PullResult,
  type RecordAnswer,
  type RecordTurn,
  type Settled,
  type Settlement,
} from "../../src/domain/jobs/queue.ts";
import type { RetryCall, RetryResult } from "../../src/domain/jobs/retry.ts";
import type { CancelResult, RescheduleResult } from "../../src/domain/jobs/schedule.ts";
import type { Tenant, TenantRef } from "../../src/domain/tenants/tenant.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import type { InstantCall, InstantQueue } from "../support/memory-redis/instant-queue.ts";
import type { FairnessChecker } from "./fairness-checker.ts";
import { isReported, type JobChecker } from "./job-checker.ts";
import type { LeaseChecker } from "./lease-checker.ts";
import type { Watch } from "./promises.ts";
import type { QueueChecker, SettleCall } from "./queue-checker.ts";
import type { SimEventStore } from "./sim-event-store.ts";
import { EPOCH_MS, type SimProcess } from "./sim-process.ts";

export interface Acquisition {
  readonly shard: number;
  readonly role: LeaseRole;
  readonly owner: string;
  readonly seen: LeaseState | null;
}

/** When a pull left, by the world's clock and its process's. */
export interface SentPull {
  readonly sentAtMs: number;
  readonly callerMs: number;
}

export interface WatchedQueueParts {
  readonly state: InstantQueue;
  readonly watch: Watch;
  readonly jobs: JobChecker;
  readonly leases: LeaseChecker;
  readonly eventStore: SimEventStore;
  readonly fairness: FairnessChecker;
  readonly queueChecker: QueueChecker;
  readonly counts: ReportCounts;
}

export interface ReportCounts {
  /** Reports that waited for the end of their job. */
  reportsKept: number;
  /** Jobs that a report ended while they waited for another try, or kept from being handed over again. */
  endedByReport: number;
  /** Failed jobs that an operator had tried again. */
  retries: number;
}

/** The queue's state, with the books kept beside it: each effect is checked at the instant at which it takes place. */
export class WatchedQueue {
  readonly state: InstantQueue;
  readonly leases: LeaseChecker;
  timesForgot = 0;
  /** Entries that a term has read and not settled, by token and tenant queue. */
  private readonly open = new Map<string, Set<string>>();
  private readonly idempotency = new Map<string, string>();
  /** The jobs of messages of batches under a key. */
  private readonly messages = new Map<string, string>();

  constructor(private readonly parts: WatchedQueueParts) {
    this.state = parts.state;
    this.leases = parts.leases;
  }

  nowMs(): number {
    return this.parts.queueChecker.nowMs();
  }

  /** By a clock that is right. */
  private timeMs(): number {
    return EPOCH_MS + this.nowMs();
  }

  onJobs(listener: (shard: number) => void): () => void {
    return this.state.onJobs(listener);
  }

  accept(
    tenant: Tenant,
    requestsPerMinute: number | null,
    job: NewJob,
    at: InstantCall & { readonly callerMs: number },
  ): AcceptResult {
    const { callerMs } = at;
    const before = this.entries(tenant.shard);
    const result = this.state.now((queue) => queue.accept(tenant, requestsPerMinute, job), at);
    // Times counted from a message go by its process's clock; all others are the queue's time.
    const fromMs = countsFromMessage(job) ? callerMs : this.timeMs();
    const waitMs = (job.dueMs ?? fromMs) - fromMs;
    if (this.entries(tenant.shard) > before) {
      this.parts.jobs.landed(tenant, job, waitMs);
      if (waitMs > 0) this.parts.queueChecker.scheduled(tenant.shard, job.jobId, { waitMs, callerMs });
    }
    this.parts.queueChecker.compareShares(tenant.shard, [tenant.tenantId]);
    return result;
  }

  acceptPiece(tenant: Tenant, requestsPerMinute: number, piece: BatchPiece, at: InstantCall): PieceResult {
    const { jobs, queueChecker, watch } = this.parts;
    const wasThere = piece.items.map(({ job }) => job !== null && this.state.jobNow(tenant, job.jobId) !== null);
    const result = this.state.now((queue) => queue.acceptPiece(tenant, requestsPerMinute, piece), at);
    for (const [i, { index, job }] of piece.items.entries()) {
      if (job === null || wasThere[i] === true || this.state.jobNow(tenant, job.jobId) === null) continue;
      jobs.landed(tenant, job, 0);
      if (piece.key === null) continue;
      const name = formatMessage(tenant, piece.key, index);
      const known = this.messages.get(name);
      watch.demand(known === undefined, "batch", () => `${name} was queued as ${known} and ${job.jobId}`);
      this.messages.set(name, job.jobId);
    }
    queueChecker.compareShares(tenant.shard, [tenant.tenantId]);
    return result;
  }

  /** A client has read the answer to a batch under this key. */
  heardBatch(tenant: Tenant, idempotency: Idempotency, outcomes: readonly BatchOutcome[], sinceForgot: number): void {
    if (sinceForgot !== this.timesForgot) return;
    for (const [index, outcome] of outcomes.entries()) {
      if (!("jobId" in outcome)) continue;
      const { jobId } = outcome;
      const name = formatMessage(tenant, idempotency, index);
      // A job that the queue accepted before it forgot, and still knows, is learned from the first answer.
      const isLearned = this.timesForgot > 0 && this.parts.jobs.jobs.has(jobId);
      const known = this.messages.get(name) ?? (isLearned ? jobId : undefined);
      this.parts.watch.demand(
        jobId === known,
        "batch",
        () => `${name} was queued as ${known} and answered as ${jobId}`,
      );
      this.messages.set(name, jobId);
    }
  }

  /** `isRepeat`: an earlier try of the call may have taken effect. */
  retry(call: RetryCall, isRepeat: boolean): readonly RetryResult[] {
    const { jobs, queueChecker, counts } = this.parts;
    const { tenant, retries, quota } = call;
    const findLife = (jobId: string) => this.state.jobNow(tenant, jobId)?.began;
    const before = retries.map(({ job }) => this.state.jobNow(tenant, job.jobId) ?? job);
    const results = this.state.now((queue) => queue.retry(call), { isRepeat });
    for (const [at, { job }] of retries.entries()) {
      const began = before[at]?.began;
      const now = findLife(job.jobId);
      if (now === undefined || now === began) continue;
      counts.retries += 1;
      jobs.retried(job.jobId, began === job.began, quota);
    }
    queueChecker.compareShares(tenant.shard, [tenant.tenantId]);
    return results;
  }

  reschedule(tenant: TenantRef, jobId: string, dueMs: number, callerMs: number): RescheduleResult {
    const result = this.state.now((queue) => queue.reschedule(tenant, jobId, dueMs), { callerMs });
    if (result === "moved") {
      const waitMs = dueMs - this.timeMs();
      this.parts.jobs.moved(jobId, waitMs);
      this.parts.queueChecker.scheduled(tenant.shard, jobId, { waitMs: Math.max(0, waitMs), callerMs });
    }
    return result;
  }

  cancel(tenant: Tenant, jobId: string): CancelResult {
    const result = this.state.now((queue) => queue.cancel(tenant, jobId));
    if (result === "canceled") this.parts.jobs.canceled(jobId);
    this.parts.queueChecker.compareShares(tenant.shard, [tenant.tenantId]);
    return result;
  }

  /** A tenant has heard that its job is cancelled. */
  heardCancel(jobId: string, sinceForgot: number): void {
    if (sinceForgot === this.timesForgot) this.parts.jobs.canceled(jobId);
  }

  /** An answer from before the queue forgot (`sinceForgot` dates the question) does not reflect its state. */
  heardAccept(tenant: Tenant, job: NewJob, result: AcceptResult, sinceForgot: number): void {
    if (sinceForgot !== this.timesForgot || job.idempotency === null) return;
    if (result.kind !== "accepted" && result.kind !== "replayed") return;
    const key = `${tenant.tenantId} ${job.idempotency.key}`;
    const known = this.idempotency.get(key) ?? result.jobId;
    this.idempotency.set(key, known);
    this.parts.watch.demand(known === result.jobId, "idempotency", () => `${key}: ${known} and ${result.jobId}`);
  }

  /** The queue forgot: keys that it knew may name other jobs from now on. */
  forgetKeys(): void {
    this.timesForgot += 1;
    this.idempotency.clear();
    this.messages.clear();
  }

  observe(tenant: Tenant, observation: Observation): ObserveResult {
    const { counts } = this.parts;
    const wasFinal = isFinal(this.state.jobNow(tenant, observation.jobId)?.status ?? "success");
    const result = this.state.now((queue) => queue.observe(tenant, observation));
    if (result === "kept") counts.reportsKept += 1;
    if (result === "recorded" && !wasFinal) counts.endedByReport += 1;
    const isTaken = result === "recorded" || result === "kept";
    if (isTaken) this.parts.jobs.told(observation.jobId, observation.type);
    this.parts.jobs.touch(observation.jobId);
    if (isTaken && observation.suppress !== null) {
      this.parts.jobs.suppress(tenant.tenantId, observation.suppress.recipient);
    }
    this.parts.queueChecker.compareShares(tenant.shard, [tenant.tenantId]);
    return result;
  }

  acquire(process: SimProcess, { shard, role, owner, seen }: Acquisition): Lease | null {
    const lease = this.state.now((queue) => queue.acquire(shard, role, owner, seen));
    if (lease !== null) this.leases.acquired(lease, process);
    return lease;
  }

  renew(lease: Lease): boolean {
    const isHeld = this.state.now((queue) => queue.renew(lease));
    if (isHeld) this.leases.renewed(lease);
    // The lease may have no owner: it was forgotten with the queue's last writes.
    else this.leases.fenced(lease);
    return isHeld;
  }

  release(lease: Lease): void {
    if (this.state.holder(lease.shard, lease.role) === lease.token) this.leases.released(lease);
    this.state.now((queue) => queue.release(lease));
  }

  pull(lease: Lease, request: PullRequest, { sentAtMs, callerMs }: SentPull): PullResult | Fenced {
    const { watch, jobs } = this.parts;
    const tenantQueues = request.tenantQueues.length;
    watch.demand(
      tenantQueues <= engineLimits.pullTenantQueuesMax,
      "memory",
      () => `a pull of ${tenantQueues} tenant queues`,
    );
    const result = this.state.now((queue) => queue.pull(lease, request), { callerMs });
    this.checkFence(lease, result);
    if (result === FENCED) return result;
    this.parts.queueChecker.pulled(lease, { ...request, sentAtMs, callerMs }, result);
    for (const job of result.tenantQueues.flatMap((tenantQueue) => tenantQueue.jobs)) {
      jobs.touch(job.jobId);
      jobs.handedOut(job.jobId);
      const truth = jobs.jobs.get(job.jobId);
      watch.demand(truth !== undefined, "nothingLost", () => `${job.jobId} was never accepted`);
      if (truth === undefined) continue;
      if (job.isReported) this.parts.counts.endedByReport += 1;
      if (truth.isExcused) continue;
      const wasReported = isReported(truth);
      watch.demand(wasReported === (job.isReported === true), "reportedOnce", () => `${job.jobId} was handed out`);
      const agrees = wasReported || jobs.isSuppressed(truth) === (job.suppressed !== null);
      watch.demand(agrees, "suppressed", () => `${job.jobId} was handed out with ${job.suppressed}`);
    }
    return result;
  }

  heardPull(process: SimProcess, lease: Lease, result: PullResult | Fenced): void {
    if (result === FENCED) return;
    this.parts.queueChecker.heardPull(process, lease, result);
    for (const { tenantQueue, jobs } of result.tenantQueues) {
      const open = this.openIn(lease, tenantQueue.tenantId);
      for (const { jobId } of jobs) open.add(jobId);
      const isBounded = open.size <= engineLimits.tenantQueueOpenMax;
      this.parts.watch.demand(isBounded, "memory", () => `${open.size} entries of ${tenantQueue.tenantId} are open`);
      const waiting = jobs.filter(({ suppressed, isReported }) => suppressed === null && !isReported).length;
      this.parts.fairness.pulled(process, tenantQueue.tenantId, waiting);
    }
  }

  /** The process has had the job for a while, and asks before it begins its delivery. */
  looksAgain(process: SimProcess, { tenantId }: QueuedJob): void {
    this.parts.fairness.looksAgain(process, tenantId);
  }

  lookAgain(lease: Lease, job: QueuedJob): JobNews | Fenced {
    const result = this.state.now((queue) => queue.lookAgain(lease, job));
    this.checkFence(lease, result);
    if (result !== FENCED && result.isReported) this.parts.counts.endedByReport += 1;
    return result;
  }

  lookedAgain(process: SimProcess, { tenantId, jobId }: QueuedJob): void {
    this.parts.fairness.lookedAgain(process, tenantId, jobId);
  }

  settle(process: SimProcess, call: SettleCall, sentAtMs: number): Settled | Fenced {
    const { watch, jobs, queueChecker } = this.parts;
    const { lease, settlements, shardTimeMs } = call;
    const isBounded = settlements.length <= engineLimits.settleBatchMax;
    watch.demand(isBounded, "memory", () => `a batch of ${settlements.length} settlements`);
    const before = this.parkedTexts(lease.shard, settlements);
    const result = this.state.now((queue) => queue.settle(lease, settlements, shardTimeMs));
    this.checkFence(lease, result);
    if (result === FENCED) return result;
    this.checkParked(lease.shard, settlements, before);
    // In the order in which events were given their ids: a batch can also say that a job starts, and how it ended.
    for (const { kind, job } of settlements) if (kind !== "start") jobs.touch(job.jobId);
    for (const { kind, job } of settlements) if (kind === "start") jobs.touch(job.jobId);
    queueChecker.settled(process, call, sentAtMs);
    queueChecker.compareShares(lease.shard, new Set(settlements.map(({ job }) => job.tenantId)));
    return result;
  }

  /** A late outcome changes only jobs that still wait as lent under this very lease. */
  settleLent(process: SimProcess, call: SettleCall, sentAtMs: number): void {
    const { jobs, queueChecker, watch } = this.parts;
    const { lease, settlements, shardTimeMs } = call;
    const strangers = settlements.filter(({ job }) => !this.isLent(lease, job.jobId));
    const before = strangers.map(({ job }) => this.describeJob(lease.shard, job));
    const parkedBefore = this.parkedTexts(lease.shard, settlements);
    this.state.now((queue) => queue.settleLent(lease, settlements, shardTimeMs));
    this.checkParked(lease.shard, settlements, parkedBefore);
    strangers.forEach(({ job }, i) => {
      const isLeft = this.describeJob(lease.shard, job) === before[i];
      watch.demand(isLeft, "lent", () => `${job.jobId} was settled under ${lease.token}, which does not have it`);
    });
    for (const { job } of settlements) {
      watch.demand(!this.isLent(lease, job.jobId), "lent", () => `${job.jobId} is lent still`);
      jobs.touch(job.jobId);
    }
    queueChecker.settled(process, call, sentAtMs);
    queueChecker.compareShares(lease.shard, new Set(settlements.map(({ job }) => job.tenantId)));
  }

  private parkedTexts(shard: number, settlements: readonly Settlement[]): readonly (string | undefined)[] {
    const { parked } = this.state.look(shard);
    return settlements.map(({ job }) => parked.get(job.jobId));
  }

  /** A job that its provider reported ends with the settlement that would have parked it. */
  private checkParked(
    shard: number,
    settlements: readonly Settlement[],
    before: readonly (string | undefined)[],
  ): void {
    const now = this.parkedTexts(shard, settlements);
    for (const [i, { job }] of settlements.entries()) {
      const truth = this.parts.jobs.jobs.get(job.jobId);
      if (now[i] === undefined || now[i] === before[i] || truth === undefined || truth.isExcused) continue;
      this.parts.watch.demand(!isReported(truth), "reportedOnce", () => `${job.jobId} was parked`);
    }
  }

  private isLent({ shard, token }: Lease, jobId: string): boolean {
    return this.state.look(shard).lentUnder(jobId) === token;
  }

  private describeJob(shard: number, job: QueuedJob): string {
    const { later } = this.state.look(shard);
    const lentUnder = this.state.look(shard).lentUnder(job.jobId);
    const record = this.state.jobNow({ tenantId: job.tenantId, shard }, job.jobId);
    return JSON.stringify([record, later.get(job.jobId), lentUnder]);
  }

  heardSettle(lease: Lease, settlements: readonly Settlement[]): void {
    for (const { kind, job } of settlements) {
      if (kind !== "start") this.openIn(lease, job.tenantId).delete(job.jobId);
    }
  }

  allow(lease: Lease, call: AllowanceCall): number | Fenced {
    const result = this.state.now((queue) => queue.allow(lease, call));
    this.checkFence(lease, result);
    return result;
  }

  record(turns: readonly RecordTurn[]): RecordAnswer {
    const shards = turns.map(({ lease }) => lease.shard);
    const before = new Map(shards.map((shard) => [shard, this.outboxKeys(shard)]));
    const result = this.state.now((queue) => queue.record(turns));
    for (const { lease } of turns) this.checkFence(lease, result.fenced.includes(lease.shard) ? FENCED : result);
    for (const [shard, keys] of before) {
      const after = this.outboxKeys(shard);
      for (const [key, row] of keys) {
        const isSafe = after.has(key) || this.parts.eventStore.has(row) || !this.parts.jobs.isClockSound;
        this.parts.watch.demand(isSafe, "recordedFirst", () => `${key} left the outbox of shard ${shard}`);
      }
    }
    return result;
  }

  private checkFence(lease: Lease, result: unknown): void {
    const isHeld = this.state.holder(lease.shard, lease.role) === lease.token;
    if (result === FENCED) this.leases.fenced(lease);
    else this.parts.watch.demand(isHeld, "fence", () => `shard ${lease.shard}, ${lease.role}`);
  }

  private openIn(lease: Lease, tenantId: string): Set<string> {
    const key = `${lease.token} ${tenantId}`;
    const open = this.open.get(key) ?? new Set<string>();
    this.open.set(key, open);
    return open;
  }

  asked(process: SimProcess, request: PullRequest): void {
    this.parts.queueChecker.asked(process, request);
  }

  answered(process: SimProcess, request: PullRequest): void {
    this.parts.queueChecker.answered(process, request);
  }

  private entries(shard: number): number {
    return this.state.look(shard).waiting.length;
  }

  private outboxKeys(shard: number) {
    return new Map(this.state.look(shard).outbox.map((row) => [`${row.tenantId}#${row.eventId}`, row]));
  }
}

function formatMessage({ tenantId }: Tenant, { key, fingerprint }: Idempotency, index: number): string {
  return `${tenantId} ${key} ${fingerprint.length} ${index}`;
}
