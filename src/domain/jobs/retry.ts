import type { Tenant, TenantRef } from "../tenants/tenant.ts";
import type { ChannelName, JobRecord, KeptContent } from "./job.ts";
import type { QueueQuota } from "./queue.ts";

/** A failed job that is to be retried under its id. */
export interface Retry {
  /**
   * The job's record as the caller read it. It identifies the life that failed, and replaces a record that has left the
   * queue.
   */
  readonly job: JobRecord;
  readonly content: KeptContent;
}

export interface RetryCall {
  readonly tenant: TenantRef;
  /** All with different jobs. */
  readonly retries: readonly Retry[];
  /** The tenant's share of the queue; absent: no bound. */
  readonly quota?: QueueQuota;
  /** When the new lives begin (unix ms): operators' earlier decisions about older jobs do not apply to them. */
  readonly atMs: number;
}

/**
 * `retried`: the job is pending again. `not_failed`: it has not failed, or that failure was retried before. `jobs`,
 * `bytes`: the tenant's share of the queue is used up. `unknown`: the tenant has no such job.
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
   * Returns the content of the tenant's failed jobs whose ends are not in the event store yet; others are left out. A
   * caller that queries the event store afterwards finds theirs there.
   */
  unrecordedContents(tenant: TenantRef, jobIds: readonly string[]): Promise<ReadonlyMap<string, KeptContent>>;
  /** Returns the content of a job that has not ended; null: there is no such job. */
  waitingContent(tenant: TenantRef, jobId: string): Promise<WaitingContent | null>;
}

export interface WaitingContent extends Pick<KeptContent, "payload" | "stored"> {
  readonly channel: ChannelName;
}

/** A job that failed, according to the event store. */
export interface FailedJob {
  readonly job: JobRecord;
  /** Null: it is no longer kept, or never was. Includes the payload even if it is large. */
  readonly content: KeptContent | null;
}

export interface FailedJobs {
  /** Returns those of the jobs whose latest recorded end is a failure. Rejects with `UnavailableError`. */
  failedJobs(tenantId: string, jobIds: readonly string[]): Promise<ReadonlyMap<string, FailedJob>>;
}

/** The charges for accepting a job besides its entry in the queue, such as a token for a pass. */
export interface RetryCharges {
  /** Charges a failed job once more. Rejects with `UnavailableError`. */
  take(tenantId: string, job: ChargedJob, payload: string): Promise<RetryCharge>;
  /** Refunds the charge, because the job was certainly not queued. Safe to repeat. */
  giveBack(tenantId: string, job: ChargedJob): Promise<void>;
  /**
   * Refunds the charge for accepting the job, and removes its stored data, because the job can no longer be retried.
   * Safe to repeat.
   */
  discard(tenantId: string, job: ChargedJob): Promise<void>;
}

/**
 * `taken`: this call charged it. `free`: the job is free of charge. `refused`: it cannot be charged, with the reason in
 * a sentence for the operator.
 */
export type RetryCharge = { readonly kind: "taken" | "free" } | { readonly kind: "refused"; readonly why: string };

export interface ChargedJob {
  readonly jobId: string;
  readonly channel: ChannelName;
}

/**
 * A life's settlements are numbered from a multiple of this, so a late settlement of an earlier life is recognised by
 * its number. In a job's count they are waits: its attempts begin anew.
 */
export const SETTLEMENTS_PER_LIFE = 1_000_000;

/** Waits of a job in its present life. */
export function waitsInLife({ waits = 0 }: { readonly waits?: number }): number {
  return waits % SETTLEMENTS_PER_LIFE;
}

/**
 * `not_kept`: its content is gone. `refused`: it cannot be charged, with the reason in a sentence for the operator.
 */
export type RetryOutcome =
  | { readonly kind: RetryResult | "not_kept" }
  | { readonly kind: "refused"; readonly why: string };

export interface JobRetries {
  /**
   * Retries failed jobs. Rejects with `TransportError` if it is unknown whether jobs were queued, with
   * `UnavailableError` if the jobs missing from the result were not.
   */
  retry(tenant: Tenant, jobIds: readonly string[]): Promise<ReadonlyMap<string, RetryOutcome>>;
  /**
   * Returns a job's content if the job has not ended, or has failed and its content is kept; otherwise null. Rejects
   * with `UnavailableError`.
   */
  findContent(tenant: Tenant, jobId: string): Promise<JobContent | null>;
}

export interface JobContent {
  readonly channel: ChannelName;
  /** As its channel encoded it. */
  readonly payload: string;
}
