import { type Clock, sleep, type Timer } from "./clock.ts";
import { isOutage } from "./errors.ts";
import type { Lease, LeaseRole, Leases } from "./journal.ts";
import { limits } from "./limits.ts";
import type { Telemetry } from "./telemetry.ts";

/** One stretch of ownership of one shard: from an acquired lease until its work is over. */
export interface LeaseTerm {
  readonly lease: Lease;
  readonly shard: number;
  /** Aborts when the term is to end, for whatever reason: begin nothing new, finish what is in flight, then return. */
  readonly closing: AbortSignal;
  /** Aborts (together with `closing`) when the lease is lost: another owner may act already. */
  readonly lost: AbortSignal;
  /** Whether nobody else can hold the lease now. Once false, false for the rest of the term. */
  isSurelyHeld(): boolean;
}

export interface ShardKeeperOptions {
  readonly leases: Leases;
  readonly role: LeaseRole;
  /** Names this process among all that play the role; another one at every start. */
  readonly owner: string;
  /** How many shards there are. */
  readonly shards: number;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Does a term's work. Resolves when all of it is over, also what was in flight when the term was closed or lost. */
  onTerm(term: LeaseTerm): Promise<void>;
}

/**
 * Keeps this process's fair share of the shards of a role: counts the living members, acquires free shards up to
 * ceil(shards / members), gives up what is above, renews what it holds.
 *
 * Invariants:
 * K1. A lease is surely held for its length less a margin, counted on the monotonic clock from when its last successful
 *     renewal was sent. A renewal that is answered after that moment extends nothing.
 * K2. A term is lost at the moment K1 ends, or when a renewal is refused, whichever comes first; it never comes back.
 * K3. A shard has at most one term here. It is competed for again only after the previous term's work is over.
 * K4. A closing term is renewed until its work is over, and released only then.
 * K5. No call that goes unanswered stops the others: each has a deadline. A lease whose acquisition got no answer
 *     belongs to nobody and expires.
 */
export class ShardKeeper {
  private readonly terms = new Map<number, { readonly term: Term; readonly over: Promise<void> }>();
  private readonly stopping = new AbortController();
  private competing: Promise<void> | null = null;
  private stopped: Promise<void> | null = null;
  private members = 1;

  constructor(private readonly options: ShardKeeperOptions) {}

  /** Begins to compete. Once only. */
  start(): void {
    if (this.stopping.signal.aborted) return;
    this.competing ??= this.compete();
  }

  /** Closes every term, waits until their work is over, releases the leases and leaves the count. Safe to repeat. */
  stop(): Promise<void> {
    this.stopped ??= this.shutDown();
    return this.stopped;
  }

  private async shutDown(): Promise<void> {
    this.stopping.abort();
    this.closeTerms(0);
    await this.competing;
    await Promise.all(Array.from(this.terms.values(), ({ over }) => over));
    const { leases, role, owner } = this.options;
    if (this.competing !== null) await this.ask("resign", () => leases.resign(role, owner));
  }

  /** Ends with `stopping`. */
  private async compete(): Promise<void> {
    const { leases, role, owner, shards, clock } = this.options;
    while (!this.stopping.signal.aborted) {
      const members = await this.ask("heartbeat", () => leases.heartbeat(role, owner, limits.leaseTtlMs));
      if (members !== null) this.members = Math.max(1, members);
      const share = Math.ceil(shards / this.members);
      this.closeTerms(share);
      await this.acquireUpTo(share);
      await sleep(clock, limits.leaseCompeteMs, this.stopping.signal);
    }
  }

  /** Closes all terms but `kept` of those that are not closing yet. The youngest go first: they have done the least. */
  private closeTerms(kept: number): void {
    const open = this.openTerms();
    for (const term of open.slice(kept)) term.close();
  }

  private openTerms(): readonly Term[] {
    return Array.from(this.terms.values(), ({ term }) => term).filter((term) => !term.closing.aborted);
  }

  private async acquireUpTo(share: number): Promise<void> {
    const free = Array.from({ length: this.options.shards }, (_, shard) => shard).filter((s) => !this.terms.has(s));
    while (free.length > 0 && !this.stopping.signal.aborted) {
      const missing = share - this.openTerms().length;
      if (missing <= 0) return;
      await Promise.all(free.splice(0, missing).map((shard) => this.acquire(shard)));
    }
  }

  private async acquire(shard: number): Promise<void> {
    const { leases, role, owner, clock } = this.options;
    const sentAtMs = clock.monotonicMs();
    const lease = await this.ask("acquire", () => leases.acquire(shard, role, owner, limits.leaseTtlMs));
    if (lease === null) return;
    const term = new Term(lease, clock, sentAtMs);
    if (this.stopping.signal.aborted) term.close();
    this.terms.set(shard, { term, over: this.runTerm(term) });
    this.gaugeHeld();
  }

  private async runTerm(term: Term): Promise<void> {
    const { telemetry, role, leases, onTerm } = this.options;
    const renewing = this.renewUntilOver(term);
    try {
      // The first await lets `acquire` enter the term before its work begins.
      await Promise.resolve();
      await onTerm(term);
    } catch (error) {
      telemetry.count("lease_terms_failed", { role });
      telemetry.log("error", "a shard's work ended with an error", { role, shard: term.shard, error: String(error) });
    }
    term.finish();
    await renewing;
    if (term.lost.aborted) {
      telemetry.count("leases_lost", { role });
      telemetry.log("warn", "lost the lease of a shard", { role, shard: term.shard });
    }
    // Also after a loss: where it was only feared, this spares the next owner the wait; otherwise the token is refused.
    await this.ask("release", () => leases.release(term.lease));
    this.terms.delete(term.shard);
    this.gaugeHeld();
  }

  /** Ends when the term's work is over or its lease is lost. */
  private async renewUntilOver(term: Term): Promise<void> {
    const { leases, clock } = this.options;
    let waitMs: number = limits.leaseRenewMs;
    while (true) {
      await sleep(clock, waitMs, term.finished);
      if (term.finished.aborted || term.lost.aborted) return;
      const sentAtMs = clock.monotonicMs();
      const held = await this.ask("renew", () => leases.renew(term.lease, limits.leaseTtlMs), term.finished);
      if (held === false) return term.lose();
      if (held) term.extend(sentAtMs);
      waitMs = held ? Math.max(0, sentAtMs + limits.leaseRenewMs - clock.monotonicMs()) : limits.leaseCompeteMs / 2;
    }
  }

  /** The call's answer, or null where it failed, gave none in time, or `signal` aborted. */
  private async ask<T>(name: string, call: () => Promise<T>, signal?: AbortSignal): Promise<T | null> {
    const { clock, telemetry, role } = this.options;
    const settled = new AbortController();
    const giveUp = () => settled.abort();
    signal?.addEventListener("abort", giveUp, { once: true });
    const deadline = sleep(clock, limits.leaseCompeteMs, settled.signal).then(() => null);
    const answer = (async () => call())().catch((error: unknown) => {
      const expected = isOutage(error);
      telemetry.count("lease_calls_failed", { role, call: name });
      telemetry.log(expected ? "debug" : "error", "a lease call failed", { role, call: name, error: String(error) });
      return null;
    });
    try {
      return await Promise.race([answer, deadline]);
    } finally {
      signal?.removeEventListener("abort", giveUp);
      giveUp();
    }
  }

  private gaugeHeld(): void {
    this.options.telemetry.gauge("shards_held", this.terms.size, { role: this.options.role });
  }
}

/** A term as its keeper drives it. */
class Term implements LeaseTerm {
  private readonly closer = new AbortController();
  private readonly loser = new AbortController();
  private readonly finisher = new AbortController();
  private heldUntilMs: number;
  private expiry: Timer;

  constructor(
    readonly lease: Lease,
    private readonly clock: Clock,
    sentAtMs: number,
  ) {
    this.heldUntilMs = sentAtMs + limits.leaseTtlMs - limits.leaseMarginMs;
    this.expiry = this.loseWhenExpired();
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

  /** A renewal sent at `sentAtMs` (monotonic) has succeeded. */
  extend(sentAtMs: number): void {
    if (this.finished.aborted) return;
    if (!this.isSurelyHeld()) return this.lose();
    this.heldUntilMs = sentAtMs + limits.leaseTtlMs - limits.leaseMarginMs;
    this.expiry.cancel();
    this.expiry = this.loseWhenExpired();
  }

  close(): void {
    this.closer.abort();
  }

  lose(): void {
    this.expiry.cancel();
    this.loser.abort();
    this.closer.abort();
  }

  finish(): void {
    this.expiry.cancel();
    this.finisher.abort();
  }

  private loseWhenExpired(): Timer {
    const waitMs = Math.max(0, this.heldUntilMs - this.clock.monotonicMs());
    return this.clock.setTimer(waitMs, () => this.lose());
  }
}
