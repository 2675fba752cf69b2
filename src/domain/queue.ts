import type { EventType } from "./event.ts";
import type { StoredEventRow } from "./event-store.ts";
import type { ChannelName, FinalStatus, JobRecord, QueuedJob, StoredPayload, SuppressionReason } from "./job.ts";
import type { JsonObject } from "./json.ts";
import type { TenantRef } from "./tenant.ts";

/**
 * The queue: where an accepted job lives until it is settled and recorded. Five verbs change a job: accept, pull,
 * settle, observe, record. Each is atomic and on disk before it answers.
 *
 * Every call can reject with `TransportError` (effect unknown: repeat it, all but `accept` are safe to repeat) or
 * `UnavailableError` (no effect).
 */
export interface Queue extends FrontQueue, OwnerQueue, RecorderQueue {}

/** State of a tenant's sliding window after the request was counted; all zero where this call counted nothing. */
export interface RateState {
  readonly limit: number;
  readonly remaining: number;
  /** Whole seconds until the window has room again (limited) or is empty (not limited). */
  readonly resetSeconds: number;
}

export interface NewJob {
  readonly jobId: string;
  readonly channel: ChannelName;
  /** Normalised address that suppression is looked up by. Without control characters. */
  readonly recipient: string;
  /** Keeps the job pending until its channel has looked at its content. */
  readonly needsScreening?: true;
  /** What its tenant calls the template that it is made from, for the event store; absent: none. */
  readonly template?: string;
  /** JSON text; "" where it is `stored`. */
  readonly payload: string;
  /** Where the payload waits outside the queue, because it is large. */
  readonly stored?: StoredPayload;
  /** The tenant's share of the queue: at most so many unfinished jobs, with payloads of so many bytes together. */
  readonly quota?: QueueQuota;
  readonly idempotency: Idempotency | null;
}

/** What a tenant may have unfinished at one time. */
export interface QueueQuota {
  readonly jobs: number;
  readonly bytes: number;
}

/** A caller's key for a request, and what the request was. */
export interface Idempotency {
  readonly key: string;
  /** Of the body and the route, without blanks. */
  readonly fingerprint: string;
}

export type AcceptResult =
  | { readonly kind: "accepted"; readonly jobId: string; readonly rate: RateState }
  /** The idempotency key was used before with the same body: the first answer again. */
  | { readonly kind: "replayed"; readonly jobId: string; readonly rate: RateState }
  /** The idempotency key was used before with another body. */
  | { readonly kind: "conflict"; readonly rate: RateState }
  | { readonly kind: "limited"; readonly rate: RateState }
  /** The tenant's share of the queue is used up. */
  | { readonly kind: "queue_full"; readonly what: "jobs" | "bytes"; readonly rate: RateState };

/** The keys that requests were queued under, for as long as they are kept. */
export interface IdempotencyKeys {
  /** What was queued under the key; null: nothing. */
  queuedUnder(tenant: TenantRef, idempotency: Idempotency): Promise<QueuedUnder | null>;
}

export interface QueuedUnder {
  readonly jobId: string;
  /** False: it was another request, and the key must not be used for this one. */
  readonly isSame: boolean;
}

/**
 * By which provider's message id which job was handed over. Known from before the settlement that names it lands, for at
 * least `limits.providerRefKeptMs`.
 */
export interface ProviderReferences {
  /** Each reference's job, or null where it is unknown, in the order of the references. */
  jobsOf(references: readonly string[]): Promise<readonly (JobAddress | null)[]>;
}

export interface JobAddress {
  readonly tenantId: string;
  readonly jobId: string;
}

/** What the front door does with the queue. */
export interface FrontQueue {
  /** Counts a request that queues nothing (a read, or one that is refused further on). */
  admit(tenant: TenantRef, requestsPerMinute: number): Promise<{ limited: boolean; rate: RateState }>;
  /**
   * Counts the request and queues the job. `requestsPerMinute` null: it was counted by `admit`, whose `rate` its caller
   * keeps; the job is then never refused for the rate. Resolves when it is on disk. A job that is known already is
   * answered as accepted, so repeating the call with the same job id never queues it twice; while the effect of a call is
   * unknown it repeats itself for `limits.acceptRetryMs`.
   */
  accept(tenant: TenantRef, requestsPerMinute: number | null, job: NewJob): Promise<AcceptResult>;
  /** The job, or null when it is unknown here (never accepted, another tenant's, or older than its stay). */
  job(tenant: TenantRef, jobId: string): Promise<JobRecord | null>;
  observe(tenant: TenantRef, observation: Observation): Promise<ObserveResult>;
}

/** What somebody else (a provider, the MTA, a reader's click) says about a job. */
export interface Observation {
  readonly jobId: string;
  readonly type: EventType;
  readonly result: JsonObject;
  /** Keeps the recipient from being sent to again. */
  readonly suppress: { readonly recipient: string; readonly reason: SuppressionReason } | null;
  /** The job as the event store has it, where the queue answered `unknown` before. */
  readonly known: JobRecord | null;
}

/**
 * `recorded`: the job's history has it now. `kept`: the job has not ended, and the report waits with it, one of each type
 * (`clicked`: and link), and joins its history at its end. A kept report says that the provider has the message: a job that waits for another
 * try ends with success at once (`recorded`), one that would be tried again or given up later ends with success then, and
 * `pull` says so of one that it hands out again (`QueuedJob.isReported`). Only a delivery that was in flight by then may
 * still hand it over a second time. `duplicate`: the job has this event already (for `clicked`: for this link), or
 * such a report waits with it.
 */
export type ObserveResult = "recorded" | "duplicate" | "unknown" | "kept";

export type LeaseRole = "dispatcher" | "recorder";

/** The right to act for a shard. The token is compared by every script that acts for an owner. */
export interface Lease {
  readonly shard: number;
  readonly role: LeaseRole;
  readonly token: string;
}

/** The answer of an owner's call whose lease is no longer held: nothing was changed. */
export const FENCED = Symbol("fenced");
export type Fenced = typeof FENCED;

/** What a lease looks like from outside. */
export interface LeaseState {
  readonly token: string;
  /** Rises by one with each renewal. */
  readonly renewals: number;
}

/**
 * Who may act for which shard. No clock of the store takes part: a lease never expires, it stays with its owner until it
 * is released or another owner takes it. Who wants it watches it: where it has not changed for a whole
 * `limits.leaseTtlMs` of the watcher's own monotonic clock, with looks that were all answered, its owner is taken for
 * dead. An owner's calls are refused (FENCED) from the moment at which its lease is released or another was granted.
 */
export interface Leases {
  /**
   * The leases of the role as they are now, by shard. Null: nobody holds it. Undefined: the part of the store that has it
   * did not answer, so nothing was seen of it. Rejects when no part answered.
   */
  leases(role: LeaseRole, shards: number): Promise<readonly (LeaseState | null | undefined)[]>;
  /** Takes the shard's lease if it is still exactly as `seen` (null: nobody's). Null: it is not, nothing was changed. */
  acquire(shard: number, role: LeaseRole, owner: string, seen: LeaseState | null): Promise<Lease | null>;
  /** Counts one more renewal. False: the lease is somebody else's by now, or nobody's. */
  renew(lease: Lease): Promise<boolean>;
  /** Makes it nobody's, and tells those who listen to `onRelease`. Without effect where it is no longer the owner's. */
  release(lease: Lease): Promise<void>;
  /**
   * Counts one more heartbeat of this process, and answers the heartbeats of all that play the role, this one included.
   * A process whose count has not changed for a whole `limits.leaseTtlMs` of answered looks is taken for dead; any change
   * is a sign of life, also one downwards.
   */
  heartbeat(role: LeaseRole, owner: string): Promise<ReadonlyMap<string, number>>;
  /** Takes a process out of the count. With `beats` only if its count is still that: for one that is taken for dead. */
  resign(role: LeaseRole, owner: string, beats?: number): Promise<void>;
  /** Calls back when a lease was released. A hint: it can be lost, and another process can be faster. */
  onRelease(listener: (role: LeaseRole, shard: number) => void): () => void;
}

/** Where a tenant's jobs of a channel wait for their turn. */
export interface TenantQueue {
  readonly tenantId: string;
  readonly channel: ChannelName;
}

export interface TenantQueuePull {
  readonly box: TenantQueue;
  /** Entries up to and including this one have been read; null reads from the start of the box. */
  readonly after: string | null;
  readonly entriesMax: number;
  /** Most bytes of entries; a box's first entry is handed out although it is larger, where the call has room for it. */
  readonly bytesMax: number;
}

export interface PullRequest {
  readonly boxes: readonly TenantQueuePull[];
  /** Every box with mail is named again: once after a lease was acquired, and when an answer got lost. */
  readonly survey: boolean;
  /**
   * Most bytes of entries, all boxes together; the call's very first entry is handed out although it is larger. Boxes are
   * read in the order of the request, so callers change it from call to call: what comes last may find no room.
   */
  readonly bytesMax: number;
  /**
   * What the shard's time is by the owner's reckoning: `shardTimeMs` of an earlier answer, and the monotonic time since
   * that answer came. Retries are due by the shard's time, which follows this: a step of the store's clock moves none.
   * Null on the first pull of a lease: the owner knows nothing yet.
   */
  readonly shardTimeMs: number | null;
}

export interface PullResult {
  /**
   * In the order of the request. `more` false: the box holds nothing beyond what it gave. True: it may hold more, also
   * where it gave nothing, because there was no room for it.
   */
  readonly boxes: readonly { readonly box: TenantQueue; readonly jobs: readonly QueuedJob[]; readonly more: boolean }[];
  /** Boxes with mail that nobody has pulled. */
  readonly ready: readonly TenantQueue[];
  /** Whether there may be more due retries or ready boxes than one call moves. */
  readonly more: boolean;
  /** Milliseconds until the next retry is due, or null. */
  readonly nextDueMs: number | null;
  /** The shard's time when this was answered (about unix ms, but without the steps of any clock). */
  readonly shardTimeMs: number;
}

export type Settlement =
  | {
      readonly kind: "final";
      readonly job: QueuedJob;
      readonly status: FinalStatus;
      readonly result: JsonObject;
      readonly event: { readonly type: EventType; readonly result: JsonObject };
      /** The provider's id of the message, which its reports name: `ProviderReferences` then knows the job. */
      readonly providerRef?: string;
      /** Its tries ended without a clear answer. Where a report waits with the job, its provider has it: success. */
      readonly isGivenUp?: true;
    }
  /** `status`: pending where no delivery was started, because the content could not be looked at. */
  | {
      readonly kind: "retry";
      readonly job: QueuedJob;
      readonly delayMs: number;
      readonly status: "running" | "pending";
      /** The wait costs the job no attempt. */
      readonly isUncounted?: true;
    }
  /** The content was looked at and its delivery starts: the job is running. */
  | { readonly kind: "start"; readonly job: QueuedJob }
  /**
   * The lease is about to be given up while the job's delivery is in flight: the job leaves its box and waits elsewhere
   * for `settleLent`, without an attempt or a wait being counted. If that has not come after `forMs`, the job returns
   * to its box, as after a crash. Where a report waits with it, it ends with success instead.
   */
  | { readonly kind: "lend"; readonly job: QueuedJob; readonly forMs: number };

/** What a box may send on a day, and how much of it is wanted. */
export interface AllowanceCall {
  readonly box: TenantQueue;
  /** UTC day, as `utcDayAt` counts. */
  readonly day: number;
  /** Deliveries that may start on it. */
  readonly allowance: number;
  /** Deliveries of that day that the caller knows to be taken, by it or those before it. */
  readonly known: number;
  readonly wanted: number;
}

/** What a shard's dispatcher does with the queue. */
export interface OwnerQueue extends Leases {
  /**
   * Takes of a day's allowance; answers how many are taken then, by all. Where more are than are `known`, nothing is
   * taken. As nobody else may act for the shard, all beyond what the caller knew is its own, however many answers it
   * missed; so the first call of a lease wants nothing and only hears what is taken.
   */
  allow(lease: Lease, call: AllowanceCall): Promise<number | Fenced>;
  pull(lease: Lease, request: PullRequest): Promise<PullResult | Fenced>;
  /**
   * `shardTimeMs` is what the shard's time is by the owner's reckoning, as in a pull: what is put aside is due by that, so
   * that a step of the store's clock since the last pull does not move it. Null: the owner knows nothing of it.
   */
  settle(lease: Lease, settlements: readonly Settlement[], shardTimeMs: number | null): Promise<"settled" | Fenced>;
  /**
   * Writes down what became of jobs that were lent under this lease, although it may be given up by now: each only while
   * the job still waits as lent under exactly this lease; what comes too late changes nothing. Finals and retries only.
   * Safe to repeat.
   */
  settleLent(lease: Lease, settlements: readonly Settlement[], shardTimeMs: number | null): Promise<void>;
  /** Calls back when a shard has new mail. A hint: it can be lost, so owners also look by themselves. */
  onJobs(listener: (shard: number) => void): () => void;
}

/** A frozen piece of a shard's outbox. */
export interface RecordPiece {
  readonly shard: number;
  /** Names the shard, and the first and the last entry: the same token always names the same rows. */
  readonly token: string;
  /** The token of the batch that it is frozen in. */
  readonly batch: string;
  readonly rows: readonly StoredEventRow[];
}

/** Pieces that are written together. The same token always names the same pieces, in the same order. */
export interface RecordBatch {
  /** A piece that is alone has its own. */
  readonly token: string;
  /** Of the caller's shards, and where it was frozen by an earlier call also of others. */
  readonly pieces: readonly RecordPiece[];
  /**
   * `frozen` by this very call, so nobody can have written it; `found`: frozen by an earlier one. `recorded`: the event store has
   * it, because another shard's piece of it was taken off, or there is nothing in it to write.
   */
  readonly state: "frozen" | "found" | "recorded";
}

/** What a call of `record` does for one shard. */
export interface RecordTurn {
  readonly lease: Lease;
  /** What the event store has: it is removed, where it still is the marked piece, and marked in that batch. */
  readonly done: RecordPiece | null;
  /** Token of a batch that the event store refuses as a whole: from now on each piece of it is a batch of its own. */
  readonly refused: string | null;
  /** Whether the next piece is asked for. */
  readonly takes: boolean;
}

export interface RecordAnswer {
  /** Shards whose lease is not held: nothing was changed there. */
  readonly fenced: readonly number[];
  readonly batches: readonly RecordBatch[];
  /** Shards that hold more than was handed out. */
  readonly more: readonly number[];
}

/** What the recorders do with the queue. */
export interface RecorderQueue extends Leases {
  /** How many shards a call of `record` may be about. */
  readonly shardsPerRecord: "all" | "one";
  /**
   * For each shard, removes what is done, and freezes and hands out the next piece; all that one call freezes is one batch,
   * or a few. Pieces and batches are fixed, at one instant, before they are handed out: a later call gets the very same.
   */
  record(turns: readonly RecordTurn[]): Promise<RecordAnswer>;
}
