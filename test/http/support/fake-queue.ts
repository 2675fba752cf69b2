import { TransportError } from "../../../src/domain/errors.ts";
import type {
  BatchItemAnswer,
  BatchPiece,
  BatchQueue,
  KnownBatch,
  PieceResult,
} from "../../../src/domain/jobs/batch.ts";
import type { ChannelName, JobRecord } from "../../../src/domain/jobs/job.ts";
import type {
  AllQueuedJobs,
  QueuedJobSummary,
  QueuedJobs,
  RecipientFilter,
} from "../../../src/domain/jobs/job-search.ts";
import type {
  AcceptResult,
  FrontQueue,
  Idempotency,
  IdempotencyKeys,
  NewJob,
  ObserveResult,
  QueuedUnder,
  QueueShare,
  RateState,
} from "../../../src/domain/jobs/queue.ts";
import type { CancelResult, RescheduleResult, WaitingJobs } from "../../../src/domain/jobs/schedule.ts";
import type { ErasedJobs, JobErasure } from "../../../src/domain/tenants/erasure.ts";
import type { SuppressionIndex } from "../../../src/domain/tenants/suppressions.ts";
import type { TenantRef } from "../../../src/domain/tenants/tenant.ts";

/** The rate state of a request that was counted before its job. */
const COUNTED: RateState = { limit: 0, remaining: 0, resetSeconds: 0 };

/**
 * A queue in memory that passes the conformance tests of the real one (`front-queue.test.ts`), and fails when told to.
 * Its windows become empty, and its jobs end, when the test says so.
 */
export class FakeQueue
  implements
    FrontQueue,
    BatchQueue,
    IdempotencyKeys,
    SuppressionIndex,
    QueuedJobs,
    AllQueuedJobs,
    JobErasure,
    WaitingJobs
{
  /** Jobs that their owner holds, and does not give up. */
  readonly held = new Set<string>();
  readonly queued: { readonly tenantId: string; readonly job: NewJob }[] = [];
  readonly jobs = new Map<string, JobRecord>();
  /** "<tenant> <address>" of each recipient that the index holds. */
  readonly suppressed = new Set<string>();
  /** Rejects the next calls, as an unavailable store does. */
  failure: Error | null = null;
  /** Whether no tenant has space for a further idempotency key, of a message or of a batch. */
  hasKeysFull = false;
  private failing: { calls: number; readonly failure: Error } | null = null;
  counted = 0;
  /** Calls that count requests, whatever their result. */
  asked = 0;
  private readonly used = new Map<string, number>();
  /** Batches by the base of their jobs' ids. */
  private readonly batches = new Map<string, { readonly queued: Set<number>; refused: string | null }>();
  private readonly keys = new Map<string, { readonly fingerprint: string; readonly jobId: string }>();

  async admit(tenant: TenantRef, requestsPerMinute: number): Promise<{ limited: boolean; rate: RateState }> {
    this.asked += 1;
    await this.answer();
    return this.count(tenant, requestsPerMinute);
  }

  async accept(tenant: TenantRef, requestsPerMinute: number | null, job: NewJob): Promise<AcceptResult> {
    this.asked += 1;
    await this.answer();
    return this.acceptNow(tenant, requestsPerMinute, job);
  }

  private async acceptNow(tenant: TenantRef, requestsPerMinute: number | null, job: NewJob): Promise<AcceptResult> {
    const { limited, rate } =
      requestsPerMinute === null ? { limited: false, rate: COUNTED } : this.count(tenant, requestsPerMinute);
    if (limited) return { kind: "limited", rate };
    const { idempotency } = job;
    const slot = `${tenant.tenantId} ${idempotency?.key}`;
    const first = idempotency === null ? undefined : this.keys.get(slot);
    if (first !== undefined && first.fingerprint !== idempotency?.fingerprint) return { kind: "conflict", rate };
    if (first !== undefined) return { kind: "replayed", jobId: first.jobId, rate };
    const what = this.fullShare(tenant, job);
    if (what !== null) return { kind: "queue_full", what, rate };
    if (idempotency !== null) this.keys.set(slot, { fingerprint: idempotency.fingerprint, jobId: job.jobId });
    this.queued.push({ tenantId: tenant.tenantId, job });
    this.jobs.set(job.jobId, {
      jobId: job.jobId,
      tenantId: tenant.tenantId,
      channel: job.channel,
      status: "pending",
      attempts: 0,
      result: null,
      events: [],
      ...(job.dueMs !== undefined && { dueMs: job.dueMs }),
      ...(job.fallback !== undefined && { fallbackOf: job.fallback.mainJobId }),
    });
    return { kind: "accepted", jobId: job.jobId, rate };
  }

  async acceptPiece(tenant: TenantRef, requestsPerMinute: number, piece: BatchPiece): Promise<PieceResult> {
    this.asked += 1;
    await this.answer();
    const { key, items, isFirstCounted } = piece;
    const slot = `${tenant.tenantId} ${key?.key}`;
    const claim = key === null ? undefined : this.keys.get(slot);
    if (claim !== undefined && claim.fingerprint !== key?.fingerprint) return { kind: "conflict" };
    if (claim !== undefined && claim.jobId !== key?.baseId) return { kind: "taken", baseId: claim.jobId };
    const batch = this.batches.get(key?.baseId ?? "") ?? { queued: new Set<number>(), refused: null };
    const answers: BatchItemAnswer[] = [];
    for (const [i, { index, job }] of items.entries()) {
      if (key !== null && batch.queued.has(index))
        answers.push({ kind: "accepted", jobId: job?.jobId ?? "", rate: COUNTED, isEarlier: true });
      else if (key !== null && claim === undefined && this.hasKeysFull)
        answers.push({ kind: "queue_full", what: "keys", rate: this.count(tenant, requestsPerMinute).rate });
      else answers.push(await this.acceptItem(tenant, i === 0 && isFirstCounted ? null : requestsPerMinute, job));
      if (key === null || answers[i]?.kind !== "accepted") continue;
      this.keys.set(slot, { fingerprint: key.fingerprint, jobId: key.baseId });
      this.batches.set(key.baseId, batch);
      batch.queued.add(index);
    }
    return { kind: "answered", answers };
  }

  private async acceptItem(tenant: TenantRef, limit: number | null, job: NewJob | null): Promise<BatchItemAnswer> {
    if (job === null) {
      const { limited, rate } = limit === null ? { limited: false, rate: COUNTED } : this.count(tenant, limit);
      return limited ? { kind: "limited", rate } : { kind: "admitted", rate };
    }
    // A job of a batch has no key of its own.
    return (await this.acceptNow(tenant, limit, job)) as BatchItemAnswer;
  }

  async batchUnder(tenant: TenantRef, { key, fingerprint }: Idempotency): Promise<KnownBatch | null> {
    await this.answer();
    const claim = this.keys.get(`${tenant.tenantId} ${key}`);
    if (claim === undefined) return null;
    const { queued = new Set<number>(), refused = null } = this.batches.get(claim.jobId) ?? {};
    const ranges = [...queued].map((index) => [index, index] as const);
    return { isSame: claim.fingerprint === fingerprint, baseId: claim.jobId, queued: ranges, refused };
  }

  async endBatch(_tenant: TenantRef, baseId: string, refused: string): Promise<void> {
    await this.answer();
    const batch = this.batches.get(baseId);
    if (batch !== undefined) batch.refused = refused;
  }

  /** Rejects all calls after this many. */
  failAfter(calls: number, failure: Error): void {
    this.failing = { calls, failure };
  }

  async reschedule({ tenantId }: TenantRef, jobId: string, dueMs: number): Promise<RescheduleResult> {
    await this.answer();
    const job = this.jobs.get(jobId);
    if (job === undefined || job.tenantId !== tenantId) return "unknown";
    if (job.dueMs === undefined) return job.status === "pending" ? "begun" : "ended";
    this.jobs.set(jobId, { ...job, dueMs });
    return "moved";
  }

  async cancel({ tenantId }: TenantRef, jobId: string): Promise<CancelResult> {
    await this.answer();
    const job = this.jobs.get(jobId);
    if (job === undefined || job.tenantId !== tenantId) return "unknown";
    if (this.held.has(jobId)) return "asked";
    if (job.result?.["reason"] === "canceled") return "canceled";
    if (job.status !== "pending") return "ended";
    const { dueMs: _, ...known } = job;
    this.jobs.set(jobId, { ...known, status: "suppressed", result: { reason: "canceled" } });
    return "canceled";
  }

  /** Empties all windows. */
  emptyWindows(): void {
    this.used.clear();
  }

  /** Ends the jobs of the tenant. */
  endJobs(tenantId: string): void {
    for (const { job } of this.queued.filter((entry) => entry.tenantId === tenantId)) {
      const record = this.jobs.get(job.jobId);
      if (record !== undefined) this.jobs.set(job.jobId, { ...record, status: "success", result: {} });
    }
  }

  private fullShare({ tenantId }: TenantRef, { quota, payload, stored, idempotency }: NewJob): QueueShare | null {
    if (this.hasKeysFull && idempotency !== null) return "keys";
    if (quota === undefined) return null;
    const countBytes = (job: Pick<NewJob, "payload" | "stored">) => job.stored?.bytes ?? Buffer.byteLength(job.payload);
    const unfinished = this.queued.filter(
      (entry) => entry.tenantId === tenantId && this.jobs.get(entry.job.jobId)?.status === "pending",
    );
    if (unfinished.length >= quota.jobs) return "jobs";
    const bytes = unfinished.reduce(
      (sum, { job }) => sum + countBytes(job),
      countBytes({ payload, ...(stored && { stored }) }),
    );
    return bytes > quota.bytes ? "bytes" : null;
  }

  async waitingJobs({ tenantId }: TenantRef) {
    await this.answer();
    const own = this.queued.filter((entry) => entry.tenantId === tenantId);
    return { jobs: own.map(({ job }) => toSummary(job)).toReversed(), isIncomplete: false };
  }

  async waitingJob({ tenantId }: TenantRef, jobId: string): Promise<QueuedJobSummary | null> {
    const found = this.queued.find((entry) => entry.tenantId === tenantId && entry.job.jobId === jobId);
    return found === undefined ? null : toSummary(found.job);
  }

  async jobsAhead({ tenantId }: TenantRef, channel: ChannelName, jobId: string): Promise<number | null> {
    const own = this.queued.filter((entry) => entry.tenantId === tenantId && entry.job.channel === channel);
    const at = own.findIndex(({ job }) => job.jobId === jobId);
    return at === -1 ? null : at;
  }

  async waitingAnywhere(_shards: number, { recipient }: RecipientFilter) {
    await this.answer();
    const own = this.queued.filter(({ job }) => job.recipient === recipient);
    const jobs = own.map(({ tenantId, job }) => ({ ...toSummary(job), tenant: { tenantId, shard: 0 } }));
    return { jobs: jobs.toReversed(), isIncomplete: false };
  }

  async unfinishedJobs({ tenantId }: TenantRef): Promise<number> {
    await this.answer();
    return this.queued.filter((entry) => entry.tenantId === tenantId).length;
  }

  /** Behaves as a queue whose owner hands the jobs out at once. */
  async eraseJobs({ tenantId }: TenantRef, recipient: string): Promise<ErasedJobs> {
    await this.answer();
    const own = this.queued.filter((entry) => entry.tenantId === tenantId && entry.job.recipient === recipient);
    for (const entry of own) this.queued.splice(this.queued.indexOf(entry), 1);
    return { unfinished: own.length, unrecorded: 0, isIncomplete: false };
  }

  async findOwner(_shards: number, jobId: string): Promise<TenantRef | null> {
    const found = this.queued.find(({ job }) => job.jobId === jobId);
    return found === undefined ? null : { tenantId: found.tenantId, shard: 0 };
  }

  async queuedUnder(tenant: TenantRef, { key, fingerprint }: Idempotency): Promise<QueuedUnder | null> {
    await this.answer();
    const first = this.keys.get(`${tenant.tenantId} ${key}`);
    return first === undefined ? null : { jobId: first.jobId, isSame: first.fingerprint === fingerprint };
  }

  async job(tenant: TenantRef, jobId: string): Promise<JobRecord | null> {
    await this.answer();
    const job = this.jobs.get(jobId);
    return job?.tenantId === tenant.tenantId ? job : null;
  }

  async observe(): Promise<ObserveResult> {
    throw new TransportError("nothing is observed through the front door's tests");
  }

  async putSuppression({ tenantId }: TenantRef, address: string): Promise<void> {
    await this.answer();
    this.suppressed.add(`${tenantId} ${address}`);
  }

  async wasErasedSince(): Promise<boolean> {
    await this.answer();
    return false;
  }

  async removeSuppression({ tenantId }: TenantRef, address: string): Promise<void> {
    await this.answer();
    this.suppressed.delete(`${tenantId} ${address}`);
  }

  async loadSuppressions(): Promise<"loaded"> {
    return "loaded";
  }

  private async answer(): Promise<void> {
    // A turn of the event loop, as the network would take.
    await new Promise((resolve) => setImmediate(resolve));
    if (this.failing !== null && this.failing.calls-- === 0) {
      this.failure = this.failing.failure;
      this.failing = null;
    }
    if (this.failure !== null) throw this.failure;
  }

  private count(tenant: TenantRef, limit: number): { limited: boolean; rate: RateState } {
    this.counted += 1;
    const used = this.used.get(tenant.tenantId) ?? 0;
    if (used >= limit) return { limited: true, rate: { limit, remaining: 0, resetSeconds: 17 } };
    this.used.set(tenant.tenantId, used + 1);
    return { limited: false, rate: { limit, remaining: limit - used - 1, resetSeconds: 60 } };
  }
}

function toSummary({ jobId, channel, recipient, template, tags, dueMs }: NewJob): QueuedJobSummary {
  const known = { jobId, channel, recipient, template: template ?? null, nextAttemptMs: null, isEnded: null };
  return { ...known, tags: tags ?? [], dueMs: dueMs ?? null };
}
