import type { TenantRef } from "../tenants/tenant.ts";
import type { JsonObject } from "../texts/json.ts";
import type { EventType } from "./event.ts";
import type { FailureClass } from "./failure-class.ts";
import type { ChannelName, FinalStatus, JobRecord, JobStatus } from "./job.ts";
import type { Tag } from "./tags.ts";

/** Selects among a tenant's jobs; null: any. Job ids rise with time. */
export interface JobFilter {
  readonly status: JobStatus | null;
  readonly channel: ChannelName | null;
  /** Normalised as in the queue. */
  readonly recipient: string | null;
  readonly template: string | null;
  /** A tag that it has, as `name:value`. */
  readonly tag: string | null;
  /** The reason for which it failed, or bounced after it was sent. */
  readonly failureClass: FailureClass | null;
  /** Jobs whose ids are at or above this one. */
  readonly fromJobId: string | null;
  /** Jobs whose ids are below this one. */
  readonly beforeJobId: string | null;
}

/** Every job. */
export const ANY_JOB: JobFilter = {
  status: null,
  channel: null,
  recipient: null,
  template: null,
  tag: null,
  failureClass: null,
  fromJobId: null,
  beforeJobId: null,
};

/** A job in the queue, with the members that its entry contains. */
export interface QueuedJobSummary {
  readonly jobId: string;
  readonly channel: ChannelName;
  readonly recipient: string;
  readonly template: string | null;
  readonly tags: readonly Tag[];
  /** When it was to be sent, Unix time in ms; null: at once. */
  readonly dueMs: number | null;
  /** When its next try is due, Unix time in ms; null: it waits only for its turn, or is lent. */
  readonly nextAttemptMs: number | null;
  /** Whether it had ended and was not recorded yet; null: it is in both stores, so only its record shows that. */
  readonly isEnded: boolean | null;
}

/** Jobs that the event store does not have yet. */
export interface QueuedJobs {
  /**
   * Returns jobs that match all but the status, newest first, and jobs that ended and are not recorded yet. Reads a
   * bounded number of entries in small pieces; `isIncomplete`: there were more. Finds each job that does not end
   * meanwhile, and a caller that reads the event store afterwards finds the others there.
   */
  waitingJobs(
    tenant: TenantRef,
    filter: JobFilter,
  ): Promise<{ readonly jobs: readonly QueuedJobSummary[]; readonly isIncomplete: boolean }>;
  /**
   * Returns the members of one unfinished job that its record does not have; null: the queue does not have the job.
   */
  waitingJob(tenant: TenantRef, jobId: string): Promise<QueuedJobSummary | null>;
  /**
   * Returns how many of the tenant's jobs are before it in their tenant queue; null: it is not there, or beyond the
   * number of entries that are searched.
   */
  jobsAhead(tenant: TenantRef, channel: ChannelName, jobId: string): Promise<number | null>;
  job(tenant: TenantRef, jobId: string): Promise<JobRecord | null>;
}

/** A filter with a recipient. */
export type RecipientFilter = JobFilter & { readonly recipient: string };

/** Jobs of any tenant that the event store does not have yet. `shards`: how many there are. */
export interface AllQueuedJobs {
  /**
   * As `waitingJobs`, for all tenants; reads fewer entries of each tenant queue, the newest ones, so that one long
   * queue does not hide the others.
   */
  waitingAnywhere(
    shards: number,
    filter: RecipientFilter,
  ): Promise<{ readonly jobs: readonly QueuedJobOfTenant[]; readonly isIncomplete: boolean }>;
  /** Returns the tenant that owns the job; null: the queue does not have it, or no longer. */
  findOwner(shards: number, jobId: string): Promise<TenantRef | null>;
}

export interface QueuedJobOfTenant extends QueuedJobSummary {
  readonly tenant: TenantRef;
}

/** A finished job as the event store lists it. */
export interface FinishedJobSummary {
  readonly tenantId: string;
  readonly jobId: string;
  readonly channel: ChannelName;
  readonly status: FinalStatus;
  readonly attempts: number;
  readonly result: JsonObject;
  readonly template: string;
  readonly recipientDomain: string;
  readonly tags: readonly Tag[];
  /** Unix time in ms. */
  readonly finishedAtMs: number;
  /** The event that ended it. */
  readonly endEventId: number;
}

export interface FinishedJobsPage {
  /** Newest first. */
  readonly jobs: readonly FinishedJobSummary[];
  /** All other matching jobs are below this id; null: there are none. */
  readonly moreBelow: string | null;
}

export interface FinishedJobs {
  /** Rejects with `UnavailableError`. */
  finished(tenantId: string, filter: JobFilter, limit: number): Promise<FinishedJobsPage>;
  finishedJob(tenantId: string, jobId: string): Promise<FinishedJobSummary | null>;
  /** Returns the number of matching jobs by their latest state. */
  count(tenantId: string, filter: JobFilter): Promise<number>;
}

/** Finished jobs of all tenants. Rejects with `UnavailableError`. */
export interface AllFinishedJobs {
  finishedAnywhere(filter: RecipientFilter, limit: number): Promise<FinishedJobsPage>;
  /** Returns the tenant that owns the job; null: it is not stored. */
  findOwner(jobId: string): Promise<string | null>;
}

/** A stored job, and the event that ended it. */
export interface EndedJob {
  readonly tenantId: string;
  readonly jobId: string;
  readonly endEventId: number;
}

/** Reports about jobs after their end. */
export interface LaterEvents {
  /**
   * Returns the types of the reports about each job's main recipient, by job id. Deliveries count for five weeks after
   * the hand-over. Rejects with `UnavailableError`.
   */
  laterEvents(jobs: readonly EndedJob[]): Promise<ReadonlyMap<string, readonly EventType[]>>;
}
