import type { TenantRef } from "../tenants/tenant.ts";

/**
 * `moved`: it will be sent at the new time. `begun`: its time had already come. `ended`: it has a final status.
 * `unknown`: the queue does not have it, or no longer.
 */
export type RescheduleResult = "moved" | "begun" | "ended" | "unknown";

/**
 * `canceled`: it has ended as suppressed, with the reason `canceled`, by this call or an earlier one, and is never
 * sent. `asked`: its owner was requested to end it, and does so unless its delivery has begun. `begun`: it is being
 * delivered, or its provider has it. `ended`: it ended otherwise.
 */
export type CancelResult = "canceled" | "asked" | "begun" | "ended" | "unknown";

/** Tenants' operations on jobs that were not handed over. All calls are safe to repeat. */
export interface WaitingJobs {
  /** Moves a job that waits for its time. `dueMs`: unix ms; a time in the past sends it now. */
  reschedule(tenant: TenantRef, jobId: string, dueMs: number): Promise<RescheduleResult>;
  cancel(tenant: TenantRef, jobId: string): Promise<CancelResult>;
}

export type CancelOutcome = Exclude<CancelResult, "asked">;

/** The same, wherever the job is stored. Rejects with `UnavailableError` or `TransportError`; safe to repeat. */
export interface JobSchedule {
  reschedule(tenant: TenantRef, jobId: string, dueMs: number): Promise<RescheduleResult>;
  /** Waits some seconds for an owner that has the job; `begun` if the owner has not ended it by then. */
  cancel(tenant: TenantRef, jobId: string): Promise<CancelOutcome>;
}

/** Longest time that a message can wait for, from the request on. */
export const SCHEDULE_MS_MAX = 30 * 24 * 60 * 60 * 1000;
