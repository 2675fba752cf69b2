import type { Json, JsonObject } from "../texts/json.ts";
import type { TenantRef } from "./tenant.ts";

/*
 * Erases a recipient: all of one tenant's data about them is removed, or loses its link to them. Every call is safe to
 * repeat, and an erasure that was interrupted is repeated as a whole.
 */

/** Members of results that identify no person. */
export const HARMLESS_MEMBERS: readonly string[] = [
  "machine",
  "by",
  "code",
  "enhanced_code",
  "reason",
  "topic",
  "spam_score",
  "spam_rules",
  "pass_id",
];
export const ERASED_TEXT = "(erased)";

/** Returns a result without the members that may quote the recipient. */
export function maskedResult(result: JsonObject): JsonObject {
  const masked: Record<string, Json> = {};
  for (const [name, value] of Object.entries(result))
    masked[name] = HARMLESS_MEMBERS.includes(name) ? value : ERASED_TEXT;
  return masked;
}

/** A recipient's jobs that are still in the queue. */
export interface ErasedJobs {
  /** Not ended yet. They end as suppressed once their owner pulls them again; jobs in flight end normally. */
  readonly unfinished: number;
  /** Ended, and not in the event store yet. */
  readonly unrecorded: number;
  /** There were more entries than the call searched. */
  readonly isIncomplete: boolean;
}

export interface JobErasure {
  /**
   * Ends the recipient's waiting jobs: each is suppressed when its turn comes, with the reason `erased`; one that waits for a
   * retry, now. Deliveries in flight go on.
   */
  eraseJobs(tenant: TenantRef, recipient: string): Promise<ErasedJobs>;
}

export interface ErasedHistory {
  /** Finished jobs that were tied to the recipient. */
  readonly finishedJobs: number;
  /** Events whose text is masked. */
  readonly events: number;
  /** Contents of failed jobs that are removed. */
  readonly payloads: number;
  /** False: the event store is still working on it, or there was more than one call handles. */
  readonly isComplete: boolean;
}

/** The event store's part. Rejects with `UnavailableError` or `TransportError`. */
export interface HistoryErasure {
  eraseRecipient(tenantId: string, recipient: string): Promise<ErasedHistory>;
}

/** The event store's part of the removal of a deleted tenant. */
export interface TenantHistory {
  /**
   * Requests the removal of everything but the sums. Resolves to whether the removal is complete; otherwise repeat it
   * later. Rejects with `UnavailableError` or `TransportError`.
   */
  removeHistory(tenantId: string): Promise<boolean>;
}

/** The queue's part. */
export interface TenantQueueRemoval {
  /** Counts the tenant's unfinished jobs, as its share of the queue counts them. */
  unfinishedJobs(tenant: TenantRef): Promise<number>;
  /**
   * Whether events of the tenant wait for the event store, including those in a batch that is being written. Also true
   * if too many events of its shard wait to be searched.
   */
  hasUnrecorded(tenant: TenantRef): Promise<boolean>;
  /** Removes the queue's data of a tenant that has no unfinished jobs; the rest expires within two days. */
  removeTenant(tenant: TenantRef): Promise<void>;
}
