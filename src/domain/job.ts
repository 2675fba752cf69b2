import type { DeliveryEvent } from "./event.ts";
import type { JsonObject } from "./json.ts";

export const CHANNELS = ["email", "whatsapp", "wallet"] as const;
export type ChannelName = (typeof CHANNELS)[number];

export const JOB_STATUSES = ["pending", "running", "success", "failed", "suppressed"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];
export type FinalStatus = Extract<JobStatus, "success" | "failed" | "suppressed">;

/**
 * What can happen to a job: its owner pulls it; a screened one starts; an attempt succeeds, fails for good or is repeated
 * later; its recipient turns out to be suppressed; its owner lends it, because its shard gets another.
 */
export type JobStep = "pull" | "start" | "succeed" | "fail" | "suppress" | "retry_later" | "lend";

const NEVER: Readonly<Record<JobStep, readonly JobStatus[]>> = {
  pull: [],
  start: [],
  succeed: [],
  fail: [],
  suppress: [],
  retry_later: [],
  lend: [],
};

/**
 * Every status, every step, and where it may lead; nowhere: the step must not happen. Specification of the Lua scripts,
 * too: a final status has no way out, so no late or doubled report can move it.
 *
 * A job stays pending although it was pulled while its content has to be screened, or where its recipient is suppressed. A
 * report of the provider that waits for the job's end makes a success of a retry, of a loan, and of a job that is given up
 * without a clear answer.
 */
export const TRANSITIONS: Readonly<Record<JobStatus, Readonly<Record<JobStep, readonly JobStatus[]>>>> = {
  pending: {
    pull: ["pending", "running"],
    start: ["running"],
    succeed: ["success"],
    fail: ["failed", "success"],
    suppress: ["suppressed"],
    retry_later: ["pending", "running", "success"],
    lend: ["pending", "running", "success"],
  },
  running: {
    pull: ["running"],
    start: ["running"],
    succeed: ["success"],
    fail: ["failed", "success"],
    suppress: ["suppressed"],
    retry_later: ["running", "success"],
    lend: ["running", "success"],
  },
  success: NEVER,
  failed: NEVER,
  suppressed: NEVER,
};

export function isFinal(status: JobStatus): status is FinalStatus {
  return status === "success" || status === "failed" || status === "suppressed";
}

/** The tenant-visible record of one message. */
export interface JobRecord {
  readonly jobId: string;
  readonly tenantId: string;
  readonly channel: ChannelName;
  readonly status: JobStatus;
  /** Deliveries that were started and have been accounted for. */
  readonly attempts: number;
  /** Present when the status is final. */
  readonly result: JsonObject | null;
  /** In the order in which they became known, oldest first. */
  readonly events: readonly DeliveryEvent[];
}

/** A job as its actor holds it: the box entry that stays until the job is settled. */
export interface QueuedJob {
  readonly jobId: string;
  readonly tenantId: string;
  readonly channel: ChannelName;
  /** Id of its entry in the tenant's box. */
  readonly entryId: string;
  /** Deliveries that have been started before this one. */
  readonly attempts: number;
  /** Waits before this one that cost no attempt; absent: none. Attempts and waits together number its settlements. */
  readonly waits?: number;
  /** Normalised address that suppression is looked up by. */
  readonly recipient: string;
  /** Why the recipient must not be sent to, or null. */
  readonly suppressed: SuppressionReason | null;
  /** A report says that its provider has it: it is not handed over again, any retry ends it with success. */
  readonly isReported?: true;
  /** Its channel has to look at its content before the first attempt; until then it is pending. */
  readonly needsScreening?: true;
  /** What its tenant calls the template that it is made from; absent: none. */
  readonly template?: string;
  /** The channel's payload, JSON text; "" where it is `stored` and has not been fetched. */
  readonly payload: string;
  /** Its payload waits outside the queue. */
  readonly stored?: StoredPayload;
}

/** Names a payload that waits outside the queue, because it is large. */
export interface StoredPayload {
  /** SHA-256 of the payload's UTF-8 text, lower-case hexadecimal. */
  readonly sha256: string;
  readonly bytes: number;
}

export const SUPPRESSION_REASONS = ["unsubscribed", "bounced", "complained", "manual"] as const;
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];
