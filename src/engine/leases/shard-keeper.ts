import { type Clock, sleep } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import type { LeaseRole, LeaseState, Leases } from "../../domain/jobs/queue.ts";
import { limits } from "../../domain/limits.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { KeptTerm, type LeaseTerm } from "./lease-term.ts";
import { SignsOfLife } from "./signs-of-life.ts";

export type { LeaseTerm } from "./lease-term.ts";

/** Number of tries for a release that gets no answer: without a release the next owner must wait for a whole term. */
const RELEASE_TRIES_MAX = 3;

export interface ShardKeeperOptions {
  readonly leases: Leases;
  readonly role: LeaseRole;
  /** Identifies this process among all in the role; changes at every start. */
  readonly owner: string;
  readonly shards: number;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /**
   * Does a term's work. Resolves when the shard may be handed over: the term was closed or lost, and all writes are
   * done.
   */
  onTerm(term: LeaseTerm): Promise<void>;
}

/**
 * Keeps this process's fair share of a role's shards: counts the living members, acquires free shards up to ceil(shards
 * / members), gives up the excess, and renews its leases.
 *
 * Invariants:
 * K1. A lease is surely held for its length less a margin, counted on the monotonic clock from when its last successful
 *     renewal was sent. After that it is in doubt: no work begins, none is broken off, renewing goes on.
 * K2. A term is lost when a renewal is refused: another owner has been granted the lease. It never comes back.
 * K3. A process takes another's lease only after it has seen the lease unchanged for its whole length, by reads that
 *     were all answered (`SignsOfLife`), and only if it is still unchanged. A takeover therefore comes after K1 has
 *     ended for the owner, and a silence of the store, however long, takes no lease from its owner.
 * K4. A shard has at most one term here; a closing term is renewed until its work is over, and then released at once.
 * K5. An unanswered call does not block the others: each has a deadline. A lease whose acquisition got no answer counts
 *     as unowned, and is watched like a dead owner's.
 * K6. A process that stops leaves the count before anything else, so that the others take the shards that it releases.
 */
export class ShardKeeper {
  private readonly terms = new Map<number, { readonly term: KeptTerm; readonly over: Promise<void> }>();
  private readonly otherLeases = new SignsOfLife<number, LeaseState>(isSameLease);
  private readonly otherMembers = new SignsOfLife<string, number>((a, b) => a === b);
  /**
   * When this process may compete again for a shard whose work ended here unexpectedly: errors must not cause a busy
   * loop.
   */
  private readonly restingUntilMs = new Map<number, number>();
  private readonly stopping = new AbortController();
  private nudge = new AbortController();
  private isBeating = false;
  private competing: Promise<void> | null = null;
  private stopped: Promise<void> | null = null;
  private members = 1;

  constructor(private readonly options: ShardKeeperOptions) {}

  /** The shards that this process holds. */
  get shards(): readonly number[] {
    return [...this.terms.keys()];
  }

  /** Starts competing for shards. Call only once. */
  start(): void {
    if (this.stopping.signal.aborted) return;
    this.competing ??= this.compete();
  }

  /** Leaves the count, closes every term, waits until their work is over and releases the leases. Safe to repeat. */
  stop(): Promise<void> {
    this.stopped ??= this.shutDown();
    return this.stopped;
  }

  private async shutDown(): Promise<void> {
    const { leases, role, owner } = this.options;
    this.stopping.abort();
    this.nudge.abort();
    const resign = () => this.ask("resign", () => leases.resign(role, owner));
    // A heartbeat in flight could register the process once more.
    const isBeating = this.isBeating;
    const resigned = this.competing === null ? null : resign();
    this.closeTerms(0);
    await this.competing;
    if (isBeating) await resign();
    await Promise.all(Array.from(this.terms.values(), ({ over }) => over));
    await resigned;
  }

  /** Ends when `stopping` aborts. */
  private async compete(): Promise<void> {
    const { leases, role, shards, clock } = this.options;
    const unsubscribe = leases.onRelease((released) => {
      if (released === role) this.nudge.abort();
    });
    while (!this.stopping.signal.aborted) {
      const begunMs = clock.monotonicMs();
      this.nudge = new AbortController();
      const [, states] = await Promise.all([this.countMembers(), this.ask("look", () => leases.leases(role, shards))]);
      if (this.stopping.signal.aborted) break;
      this.watch(states ?? [], begunMs);
      const share = Math.ceil(shards / this.members);
      this.closeTerms(share);
      await this.acquireUpTo(share, states ?? []);
      if (this.stopping.signal.aborted) break;
      await sleep(clock, Math.max(0, begunMs + limits.leaseCompeteMs - clock.monotonicMs()), this.nudge.signal);
    }
    unsubscribe();
  }

  /** Reports that this process lives, and counts the living members. */
  private async countMembers(): Promise<void> {
    const { leases, role, owner, clock } = this.options;
    const askedAtMs = clock.monotonicMs();
    this.isBeating = true;
    const beats = await this.ask("heartbeat", () => leases.heartbeat(role, owner));
    this.isBeating = false;
    if (beats === null) return;
    const look = { askedAtMs, heardAtMs: clock.monotonicMs() };
    for (const member of this.otherMembers.keys()) if (!beats.has(member)) this.otherMembers.gone(member);
    let living = 1;
    for (const [member, count] of beats) {
      if (member === owner) continue;
      this.otherMembers.seen(member, count, look);
      if (!this.otherMembers.isSilent(member)) living += 1;
      else void this.ask("resign", () => leases.resign(role, member, count));
    }
    this.members = living;
  }

  private watch(states: readonly (LeaseState | null | undefined)[], askedAtMs: number): void {
    const look = { askedAtMs, heardAtMs: this.options.clock.monotonicMs() };
    for (const [shard, state] of states.entries()) {
      if (state === null || this.terms.has(shard)) this.otherLeases.gone(shard);
      else if (state !== undefined) this.otherLeases.seen(shard, state, look);
    }
  }

  /**
   * Closes all but `kept` of the terms that are not closing yet, the youngest first: they have done the least work.
   */
  private closeTerms(kept: number): void {
    const open = this.openTerms();
    for (const term of open.slice(kept)) term.close();
  }

  private openTerms(): readonly KeptTerm[] {
    return Array.from(this.terms.values(), ({ term }) => term).filter((term) => !term.closing.aborted);
  }

  private async acquireUpTo(share: number, states: readonly (LeaseState | null | undefined)[]): Promise<void> {
    const nowMs = this.options.clock.monotonicMs();
    const free: { readonly shard: number; readonly seen: LeaseState | null }[] = [];
    for (const [shard, seen] of states.entries()) {
      if (seen === undefined || this.terms.has(shard) || nowMs < (this.restingUntilMs.get(shard) ?? 0)) continue;
      if (seen === null || this.otherLeases.isSilent(shard)) free.push({ shard, seen });
    }
    while (free.length > 0 && !this.stopping.signal.aborted) {
      const missing = share - this.openTerms().length;
      if (missing <= 0) return;
      await Promise.all(free.splice(0, missing).map(({ shard, seen }) => this.acquire(shard, seen)));
    }
  }

  private async acquire(shard: number, seen: LeaseState | null): Promise<void> {
    const { leases, role, owner, clock } = this.options;
    const sentAtMs = clock.monotonicMs();
    const lease = await this.ask("acquire", () => leases.acquire(shard, role, owner, seen));
    if (lease === null) return;
    const term = new KeptTerm(lease, clock, sentAtMs);
    if (this.stopping.signal.aborted) term.close();
    this.terms.set(shard, { term, over: this.runTerm(term) });
    this.gaugeHeld();
  }

  private async runTerm(term: KeptTerm): Promise<void> {
    const { telemetry, role, clock, onTerm } = this.options;
    const renewing = this.renewUntilOver(term);
    try {
      // The first await lets `acquire` enter the term before its work begins.
      await Promise.resolve();
      await onTerm(term);
    } catch (error) {
      telemetry.count("lease_terms_failed", { role });
      telemetry.log("error", "a shard's work ended with an error", { role, shard: term.shard, error: String(error) });
    }
    const wasAsked = term.closing.aborted && !term.lost.aborted;
    term.finish();
    await renewing;
    if (term.lost.aborted) {
      telemetry.count("leases_lost", { role });
      telemetry.log("warn", "lost the lease of a shard", { role, shard: term.shard });
    } else await this.release(term);
    // A shard that was handed over on request may come back at once: its new owner can leave within the second.
    if (!wasAsked) this.restingUntilMs.set(term.shard, clock.monotonicMs() + limits.leaseCompeteMs);
    this.terms.delete(term.shard);
    this.gaugeHeld();
  }

  private async release(term: KeptTerm): Promise<void> {
    const release = () => this.options.leases.release(term.lease).then(() => true);
    for (let tries = 1; !(await this.ask("release", release)); tries += 1) {
      if (tries === RELEASE_TRIES_MAX || !term.isSurelyHeld()) return;
    }
  }

  /** Ends when the term's work is over or its lease is lost. */
  private async renewUntilOver(term: KeptTerm): Promise<void> {
    const { leases, clock, telemetry, role } = this.options;
    let waitMs: number = limits.leaseRenewMs;
    while (true) {
      await sleep(clock, waitMs, term.finished);
      if (term.finished.aborted || term.lost.aborted) return;
      const sentAtMs = clock.monotonicMs();
      const held = await this.ask("renew", () => leases.renew(term.lease), term.finished);
      if (held === false) return term.lose();
      if (held) {
        if (!term.isSurelyHeld()) telemetry.count("leases_in_doubt", { role });
        term.extend(sentAtMs);
      }
      waitMs = held ? Math.max(0, sentAtMs + limits.leaseRenewMs - clock.monotonicMs()) : limits.leaseCompeteMs / 2;
    }
  }

  /** Returns the call's answer, or null if it failed, did not answer in time, or `signal` aborted. */
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

function isSameLease(a: LeaseState, b: LeaseState): boolean {
  return a.token === b.token && a.renewals === b.renewals;
}
