import type { Json, JsonObject } from "../texts/json.ts";
import type { TenantRef } from "./tenant.ts";

/*
 * Erasing a recipient: everything that one tenant's part of the service keeps of them leaves, or loses its tie to them.
 * Every call is safe to repeat, and an erasure that did not get through is repeated as a whole.
 */

/** Members of results that name nobody. */
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

/** A result without what may quote the recipient. */
export function maskedResult(result: JsonObject): JsonObject {
  const masked: Record<string, Json> = {};
  for (const [name, value] of Object.entries(result))
    masked[name] = HARMLESS_MEMBERS.includes(name) ? value : ERASED_TEXT;
  return masked;
}

/** What is left of a recipient's jobs in the queue. */
export interface ErasedJobs {
  /** Not ended yet. They end as suppressed once their owner has them again; those in flight end as they end. */
  readonly unfinished: number;
  /** Ended, and not in the event store yet. */
  readonly unrecorded: number;
  /** There were more entries than were looked at. */
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
  /** False: the event store still works on it, or there was more than one call takes. */
  readonly isComplete: boolean;
}

/** The event store's part. Rejects with `UnavailableError` or `TransportError`. */
export interface HistoryErasure {
  eraseRecipient(tenantId: string, recipient: string): Promise<ErasedHistory>;
}

/** The event store's part of the removal of a deleted tenant. */
export interface TenantHistory {
  /**
   * Asks for the removal of everything but the sums. Resolves to whether nothing is left; otherwise repeat it later. Rejects
   * with `UnavailableError` or `TransportError`.
   */
  removeHistory(tenantId: string): Promise<boolean>;
}

/** The queue's part. */
export interface TenantQueueRemoval {
  /** The tenant's unfinished jobs, as its share of the queue counts them. */
  unfinishedJobs(tenant: TenantRef): Promise<number>;
  /**
   * Whether events of the tenant wait for the event store, those in a batch that is being written among them. True, too, if so much
   * waits in its shard that it is not looked through.
   */
  hasUnrecorded(tenant: TenantRef): Promise<boolean>;
  /** Removes what the queue keeps of a tenant that has no unfinished jobs; the rest of it expires within two days. */
  removeTenant(tenant: TenantRef): Promise<void>;
}
