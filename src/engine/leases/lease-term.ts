import type { Clock } from "../../domain/clock.ts";
import type { Lease } from "../../domain/jobs/queue.ts";
import { limits } from "../../domain/limits.ts";

/** One stretch of ownership of one shard: from an acquired lease until its work is over. */
export interface LeaseTerm {
  readonly lease: Lease;
  readonly shard: number;
  /**
   * Aborts when the term must end, for whatever reason: begin no new work, hand over the work in flight, then return.
   */
  readonly closing: AbortSignal;
  /** Aborts (together with `closing`) when the lease is lost: another owner is already acting. */
  readonly lost: AbortSignal;
  /**
   * Whether no other process can have the lease now. False while that is in doubt, because renewals get no answer: then
   * no new work may begin, but work in flight may continue. The doubt ends with a successful renewal, or with `lost`.
   */
  isSurelyHeld(): boolean;
  /** Resolves to true once the lease is surely held (at once if it is), to false when the term must end instead. */
  whenSurelyHeld(): Promise<boolean>;
}

/** A term with the operations of its keeper. */
export class KeptTerm implements LeaseTerm {
  private readonly closer = new AbortController();
  private readonly loser = new AbortController();
  private readonly finisher = new AbortController();
  private heldUntilMs: number;
  private doubters: ((isHeld: boolean) => void)[] = [];

  constructor(
    readonly lease: Lease,
    private readonly clock: Clock,
    sentAtMs: number,
  ) {
    this.heldUntilMs = heldUntil(sentAtMs);
  }

  get shard(): number {
    return this.lease.shard;
  }

  get closing(): AbortSignal {
    return this.closer.signal;
  }

  get lost(): AbortSignal {
    return this.loser.signal;
  }

  /** Aborts when the term's work is over. */
  get finished(): AbortSignal {
    return this.finisher.signal;
  }

  isSurelyHeld(): boolean {
    return !this.lost.aborted && this.clock.monotonicMs() < this.heldUntilMs;
  }

  whenSurelyHeld(): Promise<boolean> {
    if (this.closing.aborted) return Promise.resolve(false);
    if (this.isSurelyHeld()) return Promise.resolve(true);
    return new Promise((resolve) => this.doubters.push(resolve));
  }

  /**
   * Records that a renewal sent at `sentAtMs` (monotonic) succeeded: no other process had taken the lease before it was
   * carried out.
   */
  extend(sentAtMs: number): void {
    this.heldUntilMs = Math.max(this.heldUntilMs, heldUntil(sentAtMs));
    if (this.isSurelyHeld()) this.answerDoubters(true);
  }

  close(): void {
    this.closer.abort();
    this.answerDoubters(false);
  }

  lose(): void {
    this.loser.abort();
    this.close();
  }

  finish(): void {
    this.finisher.abort();
    this.answerDoubters(false);
  }

  private answerDoubters(isHeld: boolean): void {
    for (const answer of this.doubters.splice(0)) answer(isHeld);
  }
}

function heldUntil(sentAtMs: number): number {
  return sentAtMs + limits.leaseTtlMs - limits.leaseMarginMs;
}
