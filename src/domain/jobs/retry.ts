import type { Tenant, TenantRef } from "../tenants/tenant.ts";
import type { ChannelName, JobRecord, KeptContent } from "./job.ts";
import type { QueueQuota } from "./queue.ts";

/** A failed job that is to be tried again under its id. */
export interface Retry {
  /** The job as the caller has seen it. Names the life that failed, and stands in for a record that has left the queue. */
  readonly job: JobRecord;
  readonly content: KeptContent;
}

export interface RetryCall {
  readonly tenant: TenantRef;
  /** All with different jobs. */
  readonly retries: readonly Retry[];
  /** The tenant's share of the queue; absent: no bound. */
  readonly quota?: QueueQuota;
  /** When the new lives begin (unix ms): what an operator decided about older jobs does not concern them. */
  readonly atMs: number;
}

/**
 * `retried`: the job is pending again. `not_failed`: it has not failed, or that failure was retried before. `jobs`,
 * `bytes`: the tenant's share of the queue has no room. `unknown`: the tenant has no such job.
 */
export type RetryResult = "retried" | "not_failed" | "jobs" | "bytes" | "unknown";

/** The operators' side of the queue. */
export interface RetryQueue {
  /**
   * Queues failed jobs again, in the order of the retries; resolves when that is on disk. A failure is retried once,
   * however often and late the call is repeated. While the effect of a call is unknown, it repeats itself for
   * `limits.acceptRetryMs`, then rejects with `TransportError`.
   */
  retry(call: RetryCall): Promise<readonly RetryResult[]>;
  /**
   * What failed jobs of the tenant were to send, as far as their ends are not in the event store yet; others are left out.
   * A caller that asks the event store afterwards finds theirs there.
   */
  unrecordedContents(tenant: TenantRef, jobIds: readonly string[]): Promise<ReadonlyMap<string, KeptContent>>;
  /** What a job that has not ended is to send; null: there is no such job. */
  waitingContent(tenant: TenantRef, jobId: string): Promise<WaitingContent | null>;
}

export interface WaitingContent extends Pick<KeptContent, "payload" | "stored"> {
  readonly channel: ChannelName;
}

/** A job that failed, as the event store knows it. */
export interface FailedJob {
  readonly job: JobRecord;
  /** Null: it is no longer kept, or never was. Of a large payload, with the payload. */
  readonly content: KeptContent | null;
}

export interface FailedJobs {
  /** Those of the jobs whose latest recorded end is a failure. Rejects with `UnavailableError`. */
  failedJobs(tenantId: string, jobIds: readonly string[]): Promise<ReadonlyMap<string, FailedJob>>;
}

/** What accepting a job takes beside its place in the queue, such as a token for a pass. */
export interface RetryCharges {
  /** Takes it once more for a failed job. Rejects with `UnavailableError`. */
  take(tenantId: string, job: ChargedJob, payload: string): Promise<RetryCharge>;
  /** Gives back what was taken, because the job was certainly not queued. Safe to repeat. */
  giveBack(tenantId: string, job: ChargedJob): Promise<void>;
  /** Gives back what accepting the job took, and removes what it stored, because nobody can try the job again. Safe to repeat. */
  discard(tenantId: string, job: ChargedJob): Promise<void>;
}

/**
 * `taken`: it was taken, by this call. `free`: the job costs nothing. `refused`: it cannot be taken, with the reason in a
 * sentence for the operator.
 */
export type RetryCharge = { readonly kind: "taken" | "free" } | { readonly kind: "refused"; readonly why: string };

export interface ChargedJob {
  readonly jobId: string;
  readonly channel: ChannelName;
}

/**
 * A life's settlements are numbered from a multiple of this on, so a late settlement of an earlier life is known as such,
 * whatever its number. In a job's count they are waits: its attempts begin anew.
 */
export const SETTLEMENTS_PER_LIFE = 1_000_000;

/** Waits of a job in its present life. */
export function waitsInLife({ waits = 0 }: { readonly waits?: number }): number {
  return waits % SETTLEMENTS_PER_LIFE;
}

/**
 * `not_kept`: what it was to send is gone. `refused`: what accepting it takes cannot be taken, with the reason in a sentence
 * for the operator.
 */
export type RetryOutcome =
  | { readonly kind: RetryResult | "not_kept" }
  | { readonly kind: "refused"; readonly why: string };

export interface JobRetries {
  /**
   * Has failed jobs tried again. Rejects with `TransportError` if it is unknown whether jobs were queued, with
   * `UnavailableError` if those not told of were not.
   */
  retry(tenant: Tenant, jobIds: readonly string[]): Promise<ReadonlyMap<string, RetryOutcome>>;
  /**
   * What a job is to send, or was, as long as it has not ended or has failed and is kept; null: it is not kept. Rejects with
   * `UnavailableError`.
   */
  findContent(tenant: Tenant, jobId: string): Promise<JobContent | null>;
}

export interface JobContent {
  readonly channel: ChannelName;
  /** As its channel encoded it. */
  readonly payload: string;
}
