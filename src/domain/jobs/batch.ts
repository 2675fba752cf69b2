import type { TenantRef } from "../tenants/tenant.ts";
import type { AcceptResult, Idempotency, NewJob, QueueShare, RateState } from "./queue.ts";

/** Messages of one batch. */
export const BATCH_MESSAGES_MAX = 1_000;
/** Messages that enter the queue together: small enough that a batch does not hold up other requests for long. */
export const BATCH_PIECE_MESSAGES_MAX = 128;

/** A batch that is queued under an idempotency key. */
export interface BatchKey extends Idempotency {
  /** The base from which the ids of its jobs are derived (`idInBatch`). */
  readonly baseId: string;
  /** Names this run of the batch; a repeat of the request is another run. */
  readonly run: string;
}

export interface BatchItem {
  /** Its position in the batch. */
  readonly index: number;
  /** Null: the message was refused, and is only counted. */
  readonly job: NewJob | null;
}

/** Messages of a batch that enter the queue in one call, in the order of their indexes. */
export interface BatchPiece {
  /** Null: the batch has no idempotency key. */
  readonly key: BatchKey | null;
  readonly items: readonly BatchItem[];
  /** The first item was counted before. */
  readonly isFirstCounted: boolean;
}

export type BatchItemAnswer =
  | Exclude<AcceptResult, { readonly kind: "replayed" | "conflict" }>
  | { readonly kind: "admitted"; readonly rate: RateState };

/** `taken`: another call of the same request was first, under this base. `conflict`: the key is another request's. */
export type PieceResult =
  | { readonly kind: "answered"; readonly answers: readonly BatchItemAnswer[] }
  | { readonly kind: "taken"; readonly baseId: string }
  | { readonly kind: "conflict" };

/** The queue's state of a batch under a key. */
export interface KnownBatch {
  /** False: the key belongs to another request, and must not be used for this one. */
  readonly isSame: boolean;
  readonly baseId: string;
  /** First and last index of the messages that were queued. */
  readonly queued: readonly (readonly [number, number])[];
  /** The text stored by `endBatch`; null: none yet. */
  readonly refused: string | null;
}

/** The queue as batches see it. Calls reject as those of `Queue` do. */
export interface BatchQueue {
  /**
   * Counts each message as a request, and queues those that have a job, in one call that lands whole or not at all. Under a
   * key, a message that was queued before is answered as accepted and neither counted nor queued; the key is claimed with the
   * first message that is queued.
   */
  acceptPiece(tenant: TenantRef, requestsPerMinute: number, piece: BatchPiece): Promise<PieceResult>;
  /** Null: the key is not in use. */
  batchUnder(tenant: TenantRef, idempotency: Idempotency): Promise<KnownBatch | null>;
  /** Stores the refusals of a batch's answer for as long as its key is kept. Safe to repeat. */
  endBatch(tenant: TenantRef, baseId: string, refused: string): Promise<void>;
}

/** A batch on its way to the queue. */
export interface Batch {
  readonly tenant: TenantRef;
  readonly requestsPerMinute: number;
  /** The request was already counted, as its first message. */
  readonly isCounted: boolean;
  readonly idempotency: Idempotency | null;
  /** How many messages it has. */
  readonly size: number;
  /**
   * Makes the messages from an index on: at most a piece, at least one, without gaps except for those that `isQueued`
   * already. A repeat may request the same ones again.
   */
  make(from: number, ids: BatchIds): MadePart | Promise<MadePart>;
  /** Formats the refusal of a message for which the queue had no capacity, as a text that the answer repeats. */
  describeRefusal(answer: NoRoom): string;
  /** Reports that this call has queued more jobs, regardless of the rest and of the answer. */
  onQueued(jobs: number): void;
}

export interface BatchIds {
  jobId(index: number): string;
  isQueued(index: number): boolean;
}

export interface MadePart {
  readonly messages: readonly MadeMessage[];
  /** Index after the last message that was examined. */
  readonly next: number;
}

/** A message of a batch: its job, or the text of its refusal. */
export type MadeMessage = { readonly index: number } & ({ readonly job: NewJob } | { readonly refusal: string });

/** `unknown`, `away`: the queue did not answer, so the message may or may not be queued, or is not. */
export type NoRoom = "limited" | QueueShare | "unknown" | "away";

export type BatchResult =
  | {
      readonly kind: "answered";
      /** By index: the job's id, or a refusal. */
      readonly outcomes: readonly BatchOutcome[];
      /** This is the answer to an earlier request with the same key; this call queued and counted no messages. */
      readonly isReplay: boolean;
      /** After the last message; null: none was counted. */
      readonly rate: RateState | null;
    }
  | { readonly kind: "conflict" }
  /** No message was queued, because none found capacity, for this reason. */
  | { readonly kind: "no_room"; readonly why: "limited" | QueueShare; readonly rate: RateState }
  /** The tenant has reached its limit of batches that wait in this process. */
  | { readonly kind: "busy" };

export type BatchOutcome = { readonly jobId: string } | { readonly refusal: string };

/** Queues batches. */
export interface Batches {
  /**
   * Rejects with `TransportError` or `UnavailableError` if the queue is away and the caller should repeat the request:
   * under a key always, since the repeat queues the missing messages; without one, only if no message was queued.
   */
  accept(batch: Batch): Promise<BatchResult>;
}
