import type { TenantRef } from "../tenants/tenant.ts";

/**
 * `moved`: it will be sent at the new time. `begun`: its time had come before. `ended`: it has a final status. `unknown`: the
 * queue does not have it, or no longer.
 */
export type RescheduleResult = "moved" | "begun" | "ended" | "unknown";

/**
 * `canceled`: it has ended as suppressed, with the reason `canceled`, by this call or an earlier one, and is never sent.
 * `asked`: its owner has it and was asked to end it, which it does unless its delivery has begun. `begun`: it is being
 * delivered, or its provider has it. `ended`: it ended otherwise.
 */
export type CancelResult = "canceled" | "asked" | "begun" | "ended" | "unknown";

/** What tenants may do with jobs that were not handed over. All calls are safe to repeat. */
export interface WaitingJobs {
  /** Moves a job that waits for its time. `dueMs`: unix ms; a time in the past sends it now. */
  reschedule(tenant: TenantRef, jobId: string, dueMs: number): Promise<RescheduleResult>;
  cancel(tenant: TenantRef, jobId: string): Promise<CancelResult>;
}

export type CancelOutcome = Exclude<CancelResult, "asked">;

/** The same, wherever the job is. Rejects with `UnavailableError` or `TransportError`; safe to repeat. */
export interface JobSchedule {
  reschedule(tenant: TenantRef, jobId: string, dueMs: number): Promise<RescheduleResult>;
  /** Waits for an owner that has the job, for some seconds; `begun` if it did not end it by then. */
  cancel(tenant: TenantRef, jobId: string): Promise<CancelOutcome>;
}

/** Longest time that a message can wait for, from the request on. */
export const SCHEDULE_MS_MAX = 30 * 24 * 60 * 60 * 1000;
