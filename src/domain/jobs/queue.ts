import type { Plan, TenantRef } from "../tenants/tenant.ts";
import type { JsonObject } from "../texts/json.ts";
import type { EventType } from "./event.ts";
import type { StoredEventRow } from "./event-store.ts";
import type { Fallback } from "./fallback.ts";
import type {
  Attempt,
  ChannelName,
  FinalStatus,
  JobRecord,
  QueuedJob,
  StoredPayload,
  SuppressionReason,
} from "./job.ts";
import type { FailureCause, FurtherEvent } from "./outcome.ts";
import type { Tag } from "./tags.ts";

/**
 * The queue: holds an accepted job until it is settled and recorded. Five verbs change a job: accept (with `RetryQueue`,
 * its addition for operators), pull, settle, observe, record. Each is atomic and on disk before it answers.
 *
 * Every call can reject with `TransportError` (effect unknown: repeat it, all but `accept` are safe to repeat) or
 * `UnavailableError` (no effect).
 */
export interface Queue extends FrontQueue, OwnerQueue, RecorderQueue {}

/** State of a tenant's sliding window after the request was counted; all zero if this call counted no request. */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Whole seconds until the window accepts a request again (limited) or is empty (not limited). */
  readonly resetSeconds: number;
}

export interface NewJob {
  readonly jobId: string;
  readonly channel: ChannelName;
  /** Normalised address for the suppression lookup. Without control characters. */
  readonly recipient: string;
  /** Keeps the job pending until its channel has checked its content. */
  readonly needsScreening?: true;
  /** The tenant's name of the template that the job is made from, for the event store; absent: none. */
  readonly template?: string;
  /** JSON text; "" if it is `stored`. */
  readonly payload: string;
  /** The location of a payload that is stored outside the queue because it is large. */
  readonly stored?: StoredPayload;
  /** The tenant's share of the queue: limits on the number of unfinished jobs and on the bytes of their payloads. */
  readonly quota?: QueueQuota;
  readonly idempotency: Idempotency | null;
  /** The step of a trace that its deliveries continue (`Span.traceparent`); absent: it is not traced. */
  readonly traceparent?: string;
  /** The tenant's labels, at most ten with different names; absent: none. */
  readonly tags?: readonly Tag[];
  /** As returned by `readTopic`; absent: only suppressions for all messages stop it. */
  readonly topic?: string;
  /** When it is to be sent (unix ms); absent: at once. */
  readonly dueMs?: number;
  /** It is sent only if another message was not received; absent: always. */
  readonly fallback?: Fallback;
}

/** Limits on a tenant's unfinished jobs. */
export interface QueueQuota {
  readonly jobs: number;
  readonly bytes: number;
}

/**
 * The part of its share that a tenant has used up: its unfinished jobs, their bytes, or the bytes of its idempotency
 * keys.
 */
export type QueueShare = "jobs" | "bytes" | "keys";

/** Returns the limits of a tenant on this plan in the queue. */
export function toQueueQuota({ queuedJobsMax, queuedBytesMax }: Plan): QueueQuota {
  return { jobs: queuedJobsMax, bytes: queuedBytesMax };
}

/** A caller's key for a request, and a fingerprint of the request. */
export interface Idempotency {
  readonly key: string;
  /** Fingerprint of the body and the route, without blanks. */
  readonly fingerprint: string;
}

export type AcceptResult =
  /** `isEarlier`: another call of the same batch queued it; absent: this call did, as far as is known. */
  | { readonly kind: "accepted"; readonly jobId: string; readonly rate: RateState; readonly isEarlier?: true }
  /** The idempotency key was used before with the same body: the first answer is repeated. */
  | { readonly kind: "replayed"; readonly jobId: string; readonly rate: RateState }
  /** The idempotency key was used before with another body. */
  | { readonly kind: "conflict"; readonly rate: RateState }
  | { readonly kind: "limited"; readonly rate: RateState }
  /** The tenant's share of the queue is used up. */
  | { readonly kind: "queue_full"; readonly what: QueueShare; readonly rate: RateState };

/** The idempotency keys of queued requests, for as long as they are kept. */
export interface IdempotencyKeys {
  /** Returns the job that was queued under the key; null: none. */
  queuedUnder(tenant: TenantRef, idempotency: Idempotency): Promise<QueuedUnder | null>;
}

export interface QueuedUnder {
  readonly jobId: string;
  /** False: it was another request, and the key must not be used for this one. */
  readonly isSame: boolean;
}

/**
 * Maps a provider's message id to the job that was handed over. Available before the settlement that names it lands,
 * for at least `limits.providerRefKeptMs`.
 */
export interface ProviderReferences {
  /** Returns each reference's job, or null if it is unknown, in the order of the references. */
  findReferencedJobs(references: readonly string[]): Promise<readonly (JobAddress | null)[]>;
}

export interface JobAddress {
  readonly tenantId: string;
  readonly jobId: string;
}

/** The HTTP API's side of the queue. */
export interface FrontQueue {
  /** Counts a request that queues no job (a read, or one that is refused later). */
  admit(tenant: TenantRef, requestsPerMinute: number): Promise<{ limited: boolean; rate: RateState }>;
  /**
   * Counts the request and queues the job. `requestsPerMinute` null: `admit` has counted the request, and the caller
   * keeps its `rate`; the job is then never refused for the rate. Resolves when the job is on disk. A job that is
   * already known is answered as accepted: repeating the call with the same job id never queues it twice. While the
   * effect of a call is unknown, it repeats itself for `limits.acceptRetryMs`.
   */
  accept(tenant: TenantRef, requestsPerMinute: number | null, job: NewJob): Promise<AcceptResult>;
  /** Returns the job, or null when it is unknown here (never accepted, another tenant's, or no longer kept). */
  job(tenant: TenantRef, jobId: string): Promise<JobRecord | null>;
  observe(tenant: TenantRef, observation: Observation): Promise<ObserveResult>;
}

/** A report about a job from outside: a provider, the MTA, or a reader's click. */
export interface Observation {
  readonly jobId: string;
  readonly type: EventType;
  readonly result: JsonObject;
  /** As in `DeliveryReport`. */
  readonly occurredAtMs?: number;
  /** Suppresses the recipient for further messages. */
  readonly suppress: { readonly recipient: string; readonly reason: SuppressionReason } | null;
  /** The job as the event store has it, after the queue has answered `unknown`. */
  readonly known: JobRecord | null;
}

/**
 * `recorded`: the job's history now contains it. `kept`: the job has not ended; the report waits with it, one per type
 * (`clicked`: and link), and joins its history at its end. Unless it is a reader's (`isByReader`), it means that the
 * provider has the message: a job that waits for another try ends with success at once (`recorded`), a job that would
 * be retried or given up later ends with success then, and `pull` marks a job with such a report that it hands out
 * again (`QueuedJob.isReported`). Only a delivery that was in flight by then may still hand the message over a second
 * time. A reader's report has none of these effects. `duplicate`: the job already has this event (for `clicked`: for
 * this link), or such a report waits with it.
 */
export type ObserveResult = "recorded" | "duplicate" | "unknown" | "kept";

export type LeaseRole = "dispatcher" | "recorder";

/** The right to act for a shard. Every script that acts for an owner compares the token. */
export interface Lease {
  readonly shard: number;
  readonly role: LeaseRole;
  readonly token: string;
}

/** The answer to a call of an owner that no longer has the lease: the call had no effect. */
export const FENCED = Symbol("fenced");
export type Fenced = typeof FENCED;

/** A lease as other processes see it. */
export interface LeaseState {
  readonly token: string;
  /** Rises by one with each renewal. */
  readonly renewals: number;
}

/**
 * Leases decide which process may act for which shard. No clock of the store takes part: a lease never expires; it
 * stays with its owner until it is released or another owner takes it. A process that wants it watches it: if it has
 * not changed for a whole `limits.leaseTtlMs` of the watcher's own monotonic clock, and all reads were answered, its
 * owner counts as dead. An owner's calls are refused (FENCED) from the moment at which its lease is released or granted
 * to another.
 */
export interface Leases {
  /**
   * Returns the current leases of the role, by shard. Null: the shard has no owner. Undefined: the part of the store
   * that has the lease did not answer, so its state is unknown. Rejects when no part answered.
   */
  leases(role: LeaseRole, shards: number): Promise<readonly (LeaseState | null | undefined)[]>;
  /**
   * Takes the shard's lease if it is still exactly as `seen` (null: without an owner). Null: it has changed, and the
   * call had no effect.
   */
  acquire(shard: number, role: LeaseRole, owner: string, seen: LeaseState | null): Promise<Lease | null>;
  /** Counts one more renewal. False: another process has the lease by now, or it has no owner. */
  renew(lease: Lease): Promise<boolean>;
  /**
   * Removes the lease's owner, and notifies the listeners of `onRelease`. No effect if this owner no longer has the
   * lease.
   */
  release(lease: Lease): Promise<void>;
  /**
   * Counts one more heartbeat of this process, and returns the heartbeats of all processes in the role, including this
   * one. A process whose count has not changed for a whole `limits.leaseTtlMs` of answered reads counts as dead; any
   * change is a sign of life, even a lower count.
   */
  heartbeat(role: LeaseRole, owner: string): Promise<ReadonlyMap<string, number>>;
  /**
   * Removes a process from the living members. With `beats`, only if its count is still that value: for a process that
   * counts as dead.
   */
  resign(role: LeaseRole, owner: string, beats?: number): Promise<void>;
  /** Calls back when a lease was released. A hint: it can be lost, and another process can be faster. */
  onRelease(listener: (role: LeaseRole, shard: number) => void): () => void;
}

/** A tenant queue: a tenant's jobs on one channel, waiting for their turn. */
export interface TenantQueue {
  readonly tenantId: string;
  readonly channel: ChannelName;
}

export interface TenantQueuePull {
  readonly tenantQueue: TenantQueue;
  /** Entries up to and including this one have been read; null reads from the start of the tenant queue. */
  readonly after: string | null;
  readonly entriesMax: number;
  /**
   * Most bytes of entries; a tenant queue's first entry is handed out even if it is larger, if the call's own limit
   * allows it.
   */
  readonly bytesMax: number;
}

export interface PullRequest {
  readonly tenantQueues: readonly TenantQueuePull[];
  /** Names every tenant queue with jobs again: once after a lease was acquired, and when an answer got lost. */
  readonly survey: boolean;
  /**
   * Most bytes of entries for all tenant queues together; the call's very first entry is handed out even if it is
   * larger. Tenant queues are read in the order of the request, so callers change the order from call to call: the
   * bytes may not suffice for the last ones.
   */
  readonly bytesMax: number;
  /**
   * The shard's time as the owner estimates it: `shardTimeMs` of an earlier answer, plus the monotonic time since that
   * answer arrived. Retries are due by the shard's time, which follows this estimate, so a step of the store's clock
   * does not move them. Null on the first pull of a lease, when the owner has no estimate yet.
   */
  readonly shardTimeMs: number | null;
  /**
   * `estimatedSkewMs` of the last answer, if its call was too short to explain it: the store's clock was set forward.
   * Null: no such step is known.
   */
  readonly confirmedSkewMs: number | null;
}

export interface PullResult {
  /**
   * In the order of the request. `more` false: the tenant queue has no jobs beyond these. True: it may have more, even
   * if it returned none because the bytes did not suffice.
   */
  readonly tenantQueues: readonly {
    readonly tenantQueue: TenantQueue;
    readonly jobs: readonly QueuedJob[];
    readonly more: boolean;
  }[];
  /** Tenant queues with jobs that no owner has pulled. */
  readonly ready: readonly TenantQueue[];
  /** Whether there may be more due retries or ready tenant queues than one call handles. */
  readonly more: boolean;
  /** Milliseconds until the next retry is due, or null. */
  readonly nextDueMs: number | null;
  /** The shard's time at this answer (about unix ms, but without the steps of any clock). */
  readonly shardTimeMs: number;
  /**
   * How far the shard's time is ahead of the store's clock by the owner's estimate, if the estimate is clearly behind
   * the shard's time: either the clock was set forward or the call took long. Only the owner can distinguish the two.
   * Null: it is not behind.
   */
  readonly estimatedSkewMs: number | null;
}

export type Settlement =
  | {
      readonly kind: "final";
      readonly job: QueuedJob;
      readonly status: FinalStatus;
      readonly result: JsonObject;
      readonly event: { readonly type: EventType; readonly result: JsonObject };
      /** Events after that one, about further recipients; absent: none. */
      readonly further?: readonly FurtherEvent[];
      /** The provider's id of the message, which its reports name: `ProviderReferences` then finds the job. */
      readonly providerRef?: string;
      /**
       * Its tries ended without a clear answer. If a report waits with the job, other than a reader's, its provider has
       * the message: success.
       */
      readonly isGivenUp?: true;
      /**
       * For metrics and logs, not for the queue; absent: the provider refused it, or the tries got no clear answer.
       */
      readonly cause?: FailureCause;
      /** The attempt for the job's history; absent: there is none to record. */
      readonly attempt?: Attempt;
    }
  /** `status`: pending if no delivery was started, because the content could not be checked. */
  | {
      readonly kind: "retry";
      readonly job: QueuedJob;
      readonly delayMs: number;
      readonly status: "running" | "pending";
      /** An uncounted wait: it costs the job no attempt. */
      readonly isUncounted?: true;
      readonly attempt?: Attempt;
    }
  /** The content was checked and its delivery starts: the job is running. */
  | { readonly kind: "start"; readonly job: QueuedJob }
  /**
   * The lease is about to be given up while the job's delivery is in flight: the job leaves its tenant queue and waits
   * elsewhere for `settleLent`, without counting an attempt or a wait. If `settleLent` does not come within `forMs`,
   * the job returns to its tenant queue, as after a crash. If a report waits with the job, it ends with success
   * instead.
   */
  | { readonly kind: "lend"; readonly job: QueuedJob; readonly forMs: number };

/** A tenant queue's allowance for a day, and how many units the caller wants. */
export interface AllowanceCall {
  readonly tenantQueue: TenantQueue;
  /** UTC day, as `utcDayAt` counts. */
  readonly day: number;
  /** Deliveries that may start on that day. */
  readonly allowance: number;
  /** Deliveries of that day that the caller knows to be taken, by itself or by earlier owners. */
  readonly known: number;
  readonly wanted: number;
}

/**
 * The outcomes are on disk. A set contains the jobs that ended with success despite their settlement, because a report
 * waited with them.
 */
export type Settled = "settled" | ReadonlySet<string>;

/** The queue's current data about a job that is not in its entry. */
export type JobNews = Pick<QueuedJob, "suppressed" | "suppressedTopic" | "isReported">;

/** The dispatcher's side of the queue. */
export interface OwnerQueue extends Leases {
  /**
   * Takes units of a day's allowance; returns how many are then taken by all owners. Takes none if more are taken than
   * `known`. No other owner may act for the shard, so all units beyond `known` are the caller's own, however many
   * answers it missed; the first call of a lease therefore takes none and only reads the count.
   */
  allow(lease: Lease, call: AllowanceCall): Promise<number | Fenced>;
  pull(lease: Lease, request: PullRequest): Promise<PullResult | Fenced>;
  /** Returns the data that a pull would return now for a job that the owner has had for a while. Changes no state. */
  lookAgain(lease: Lease, job: QueuedJob): Promise<JobNews | Fenced>;
  /**
   * `shardTimeMs` is the shard's time as the owner estimates it, as in a pull: parked jobs are due by it, so a step of
   * the store's clock since the last pull does not move them. Null: the owner has no estimate.
   */
  settle(lease: Lease, settlements: readonly Settlement[], shardTimeMs: number | null): Promise<Settled | Fenced>;
  /**
   * Records the outcomes of jobs that were lent under this lease, even if the lease was given up since: each only while
   * the job still waits as lent under exactly this lease; a late outcome has no effect. A loan is prolonged in the
   * same way. A call contains at most one settlement per job, and no starts. Safe to repeat.
   */
  settleLent(lease: Lease, settlements: readonly Settlement[], shardTimeMs: number | null): Promise<void>;
  /** Calls back when a shard has new jobs. A hint: it can be lost, so owners also poll. */
  onJobs(listener: (shard: number) => void): () => void;
  /**
   * Calls back when a tenant cancels a job that the shard's owner has. A hint that can be lost: the canceller repeats
   * its request.
   */
  onCancel(listener: CancelListener): () => void;
}

export type CancelListener = (shard: number, tenantQueue: TenantQueue, jobId: string) => void;

/** A frozen piece of a shard's outbox. */
export interface RecordPiece {
  readonly shard: number;
  /** Identifies the shard, and the first and the last entry: the same token always names the same rows. */
  readonly token: string;
  /** The token of the batch that contains it. */
  readonly batch: string;
  readonly rows: readonly StoredEventRow[];
}

/** Pieces that are written together. The same token always names the same pieces, in the same order. */
export interface RecordBatch {
  /** A single piece uses its own token. */
  readonly token: string;
  /** Pieces of the caller's shards; if an earlier call froze the batch, also of others. */
  readonly pieces: readonly RecordPiece[];
  /**
   * `frozen` by this very call, so no process can have written it; `found`: frozen by an earlier call. `recorded`: the
   * event store has it, because another shard's piece of it was taken off, or it has no rows to write.
   */
  readonly state: "frozen" | "found" | "recorded";
}

/** One shard's part of a `record` call. */
export interface RecordTurn {
  readonly lease: Lease;
  /** The piece that the event store has: it is removed if it is still the marked piece, and marked in that batch. */
  readonly done: RecordPiece | null;
  /** Token of a batch that the event store refuses as a whole: from now on each of its pieces is a batch of its own. */
  readonly refused: string | null;
  /** Whether the call requests the next piece. */
  readonly takes: boolean;
}

export interface RecordAnswer {
  /** Shards without a valid lease: the call did not change them. */
  readonly fenced: readonly number[];
  readonly batches: readonly RecordBatch[];
  /** Shards that hold more than was handed out. */
  readonly more: readonly number[];
}

/** The recorder's side of the queue. */
export interface RecorderQueue extends Leases {
  /** How many shards one call of `record` may cover. */
  readonly shardsPerRecord: "all" | "one";
  /**
   * For each shard, removes the recorded piece, and freezes and hands out the next one; all pieces that one call
   * freezes form one batch, or a few. Pieces and batches are frozen, at one instant, before they are handed out: a
   * later call gets exactly the same ones.
   */
  record(turns: readonly RecordTurn[]): Promise<RecordAnswer>;
}
