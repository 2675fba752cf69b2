import type { ErasedJobs, JobErasure } from "../../../src/domain/erasure.ts";
import { TransportError } from "../../../src/domain/errors.ts";
import type { JobRecord } from "../../../src/domain/job.ts";
import type { AllQueuedJobs, QueuedJobSummary, QueuedJobs, RecipientFilter } from "../../../src/domain/job-search.ts";
import type {
  AcceptResult,
  FrontQueue,
  Idempotency,
  IdempotencyKeys,
  NewJob,
  ObserveResult,
  QueuedUnder,
  RateState,
} from "../../../src/domain/queue.ts";
import type { CancelResult, RescheduleResult, WaitingJobs } from "../../../src/domain/schedule.ts";
import type { SuppressionIndex } from "../../../src/domain/suppressions.ts";
import type { TenantRef } from "../../../src/domain/tenant.ts";

/** Of a request that was counted before its job. */
const COUNTED: RateState = { limit: 0, remaining: 0, resetSeconds: 0 };

/**
 * A queue in memory that passes the conformance tests of the real one (`front-queue.test.ts`), and fails when told to.
 * Its windows become empty, and its jobs end, when the test says so.
 */
export class FakeQueue
  implements FrontQueue, IdempotencyKeys, SuppressionIndex, QueuedJobs, AllQueuedJobs, JobErasure, WaitingJobs
{
  /** Jobs that their owner has, and does not give up. */
  readonly held = new Set<string>();
  readonly queued: { readonly tenantId: string; readonly job: NewJob }[] = [];
  readonly jobs = new Map<string, JobRecord>();
  /** "<tenant> <address>" of each recipient that the index holds. */
  readonly suppressed = new Set<string>();
  /** Rejects the next calls, as a store that is away does. */
  failure: Error | null = null;
  counted = 0;
  /** Calls that count requests, whatever came of them. */
  asked = 0;
  private readonly used = new Map<string, number>();
  private readonly keys = new Map<string, { readonly fingerprint: string; readonly jobId: string }>();

  async admit(tenant: TenantRef, requestsPerMinute: number): Promise<{ limited: boolean; rate: RateState }> {
    this.asked += 1;
    await this.answer();
    return this.count(tenant, requestsPerMinute);
  }

  async accept(tenant: TenantRef, requestsPerMinute: number | null, job: NewJob): Promise<AcceptResult> {
    this.asked += 1;
    await this.answer();
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
    });
    return { kind: "accepted", jobId: job.jobId, rate };
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

  /** All windows have room again. */
  emptyWindows(): void {
    this.used.clear();
  }

  /** The jobs of the tenant have ended. */
  endJobs(tenantId: string): void {
    for (const { job } of this.queued.filter((entry) => entry.tenantId === tenantId)) {
      const record = this.jobs.get(job.jobId);
      if (record !== undefined) this.jobs.set(job.jobId, { ...record, status: "success", result: {} });
    }
  }

  private fullShare({ tenantId }: TenantRef, { quota, payload, stored }: NewJob): "jobs" | "bytes" | null {
    if (quota === undefined) return null;
    const bytesOf = (job: Pick<NewJob, "payload" | "stored">) => job.stored?.bytes ?? Buffer.byteLength(job.payload);
    const unfinished = this.queued.filter(
      (entry) => entry.tenantId === tenantId && this.jobs.get(entry.job.jobId)?.status === "pending",
    );
    if (unfinished.length >= quota.jobs) return "jobs";
    const bytes = unfinished.reduce(
      (sum, { job }) => sum + bytesOf(job),
      bytesOf({ payload, ...(stored && { stored }) }),
    );
    return bytes > quota.bytes ? "bytes" : null;
  }

  async waitingJobs({ tenantId }: TenantRef) {
    await this.answer();
    const own = this.queued.filter((entry) => entry.tenantId === tenantId);
    return { jobs: own.map(({ job }) => summaryOf(job)).toReversed(), isIncomplete: false };
  }

  async waitingJob({ tenantId }: TenantRef, jobId: string): Promise<QueuedJobSummary | null> {
    const found = this.queued.find((entry) => entry.tenantId === tenantId && entry.job.jobId === jobId);
    return found === undefined ? null : summaryOf(found.job);
  }

  async waitingAnywhere(_shards: number, { recipient }: RecipientFilter) {
    await this.answer();
    const own = this.queued.filter(({ job }) => job.recipient === recipient);
    const jobs = own.map(({ tenantId, job }) => ({ ...summaryOf(job), tenant: { tenantId, shard: 0 } }));
    return { jobs: jobs.toReversed(), isIncomplete: false };
  }

  async unfinishedJobs({ tenantId }: TenantRef): Promise<number> {
    await this.answer();
    return this.queued.filter((entry) => entry.tenantId === tenantId).length;
  }

  /** As a queue whose owner hands the jobs out at once. */
  async eraseJobs({ tenantId }: TenantRef, recipient: string): Promise<ErasedJobs> {
    await this.answer();
    const own = this.queued.filter((entry) => entry.tenantId === tenantId && entry.job.recipient === recipient);
    for (const entry of own) this.queued.splice(this.queued.indexOf(entry), 1);
    return { unfinished: own.length, unrecorded: 0, isIncomplete: false };
  }

  async ownerOf(_shards: number, jobId: string): Promise<TenantRef | null> {
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

  async removeSuppression({ tenantId }: TenantRef, address: string): Promise<void> {
    await this.answer();
    this.suppressed.delete(`${tenantId} ${address}`);
  }

  async loadSuppressions(): Promise<"loaded"> {
    return "loaded";
  }

  private async answer(): Promise<void> {
    // A turn of the event loop, as the network takes.
    await new Promise((resolve) => setImmediate(resolve));
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

function summaryOf({ jobId, channel, recipient, template }: NewJob): QueuedJobSummary {
  return { jobId, channel, recipient, template: template ?? null, nextAttemptMs: null };
}
