import type { JsonObject } from "../texts/json.ts";
import type { DeliveryEvent } from "./event.ts";
import type { Fallback } from "./fallback.ts";
import type { Tag } from "./tags.ts";

/**
 * The name of a channel in `src/app/channels.ts`: lower-case letters, digits and `_`. It is stored, so it never
 * changes.
 */
export type ChannelName = string;

export const JOB_STATUSES = ["pending", "running", "success", "failed", "suppressed"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];
export type FinalStatus = Extract<JobStatus, "success" | "failed" | "suppressed">;

/**
 * The steps of a job: its owner pulls it; a screened job starts; an attempt succeeds, fails for good or is retried
 * later; its recipient turns out to be suppressed; its owner lends it, because another process takes over its shard; an
 * operator has it tried again after it failed.
 */
export type JobStep = "pull" | "start" | "succeed" | "fail" | "suppress" | "retry_later" | "lend" | "again";

const NEVER: Readonly<Record<JobStep, readonly JobStatus[]>> = {
  pull: [],
  start: [],
  succeed: [],
  fail: [],
  suppress: [],
  retry_later: [],
  lend: [],
  again: [],
};

/**
 * Every status and step, and the status that follows; no entry: the step must not happen. The Lua scripts follow this
 * table, too: a final status has no exit but the operator's, so no late or repeated report can change it. An operator's
 * retry begins another life of the same job.
 *
 * A job stays pending after its pull while its content has to be screened, or if its recipient is suppressed. A
 * provider's report that waits for the job's end turns a retry, a loan and the giving up of a job without a clear
 * answer into a success.
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
    again: [],
  },
  running: {
    pull: ["running"],
    start: ["running"],
    succeed: ["success"],
    fail: ["failed", "success"],
    suppress: ["suppressed"],
    retry_later: ["running", "success"],
    lend: ["running", "success"],
    again: [],
  },
  success: NEVER,
  failed: { ...NEVER, again: ["pending"] },
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
  /** Deliveries that were started and counted. */
  readonly attempts: number;
  /** Present when the status is final. */
  readonly result: JsonObject | null;
  /** In the order in which they became known, oldest first. */
  readonly events: readonly DeliveryEvent[];
  /**
   * The latest tries that did not end it, oldest first; once its end is in the event store, including the one that did.
   */
  readonly tries?: readonly Attempt[];
  /**
   * Events up to this id belong to the job's earlier lives, each of which failed and was retried by an operator; absent:
   * it has had one.
   */
  readonly began?: number;
  /** When it is to be sent (unix ms); absent: it does not wait for a scheduled time, or no longer. */
  readonly dueMs?: number;
  /** The message whose fallback it is, while it waits for its time. */
  readonly fallbackOf?: string;
}

/** The pace of the recipient's mail server, or of the provider. */
export const PACE_WAITS = ["destination_pace", "throttled"] as const;
export type PaceWait = (typeof PACE_WAITS)[number];

/**
 * One try of a job, as it is stored. A `snooze` cost no attempt; after an `uncertain` one it is unknown whether the
 * provider has the message. Texts have at most `limits.attemptCharsMax` characters; a job keeps its last
 * `limits.attemptsKeptMax`.
 */
export interface Attempt {
  /** When it ended, Unix time in ms. */
  readonly at: number;
  readonly outcome: "retry" | "snooze" | "uncertain" | "sent" | "failed";
  readonly relay?: string;
  /** The reply of the relay or provider, without the recipient, or the reason why there is none. */
  readonly reply?: string;
  /** When the next try is due, Unix time in ms; absent: there is none. */
  readonly next?: number;
  /** How long the delivery took; absent: the job was tried by a former release, or only its content was checked. */
  readonly ms?: number;
  /** The pace that a snooze waited for; absent: none. */
  readonly for?: PaceWait;
  /**
   * The class of its failure (`FailureClass`), as the event store has it; absent: it did not fail, or is still in the
   * queue.
   */
  readonly class?: string;
}

/** A job in its actor's memory: the entry in the tenant queue, which stays until the job is settled. */
export interface QueuedJob {
  readonly jobId: string;
  readonly tenantId: string;
  readonly channel: ChannelName;
  /** Id of its entry in the tenant queue. */
  readonly entryId: string;
  /** Deliveries that were started before this one. */
  readonly attempts: number;
  /**
   * Uncounted waits before this one; absent: none. Attempts and waits together number its settlements. Waits of earlier
   * lives count, too: see `waitsInLife`.
   */
  readonly waits?: number;
  /** When an operator retried it last (unix ms); absent: never. */
  readonly retriedAtMs?: number;
  /** Normalised address for the suppression lookup. */
  readonly recipient: string;
  /** Why messages must not be sent to the recipient, or null. */
  readonly suppressed: EndReason | null;
  /** The only topic that this reason applies to; absent: all messages. */
  readonly suppressedTopic?: string;
  /**
   * A report that is not a reader's shows that its provider has the message: it is not handed over again, and any retry
   * ends it with success.
   */
  readonly isReported?: true;
  /** Its channel has to check its content before the first attempt; until then it is pending. */
  readonly needsScreening?: true;
  /** The tenant's name of the template that the job is made from; absent: none. */
  readonly template?: string;
  /** The channel's payload, JSON text; "" if it is `stored` and not fetched yet. */
  readonly payload: string;
  /** Its payload is stored outside the queue. */
  readonly stored?: StoredPayload;
  /** The step of a trace that its deliveries continue (`Span.traceparent`); absent: it is not traced. */
  readonly traceparent?: string;
  /** The tenant's labels, at most ten with different names; absent: none. */
  readonly tags?: readonly Tag[];
  /**
   * The topic of the message: suppressions for this topic also stop it; absent: only suppressions for all messages do.
   */
  readonly topic?: string;
  /** When it was to be sent (unix ms); absent: as soon as it was accepted. */
  readonly dueMs?: number;
  /** It is sent only if another message was not received; absent: always. */
  readonly fallback?: Fallback;
}

/** Identifies a payload that is stored outside the queue because it is large. */
export interface StoredPayload {
  /** SHA-256 of the payload's UTF-8 text, lower-case hexadecimal. */
  readonly sha256: string;
  readonly bytes: number;
}

/** The content of a failed job, kept for a while in case an operator retries it. */
export interface KeptContent {
  /** Normalised, as in the queue. */
  readonly recipient: string;
  /** Its content has to be checked again. */
  readonly needsScreening?: true;
  readonly template?: string;
  /** JSON text; "" if it is `stored` and was not fetched. */
  readonly payload: string;
  readonly stored?: StoredPayload;
  /** As in `QueuedJob`: its next life continues the same trace. */
  readonly traceparent?: string;
  readonly tags?: readonly Tag[];
  readonly topic?: string;
  readonly dueMs?: number;
  readonly fallback?: Fallback;
  /** The number of settlements of the job in all its lives. */
  readonly settlements: number;
}

export const SUPPRESSION_REASONS = ["unsubscribed", "bounced", "complained", "manual"] as const;
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];

/**
 * Why a job ended as suppressed: its recipient is on the tenant's list, or was erased while the job waited, or the tenant
 * cancelled it, or it was a fallback that was not needed.
 */
export const END_REASONS = [...SUPPRESSION_REASONS, "erased", "canceled", "not_needed"] as const;
export type EndReason = (typeof END_REASONS)[number];
