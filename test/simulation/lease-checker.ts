import type { Lease, LeaseRole, LeaseState } from "../../src/domain/jobs/queue.ts";
import { limits } from "../../src/domain/limits.ts";
import type { Outages } from "./outages.ts";
import type { Watch } from "./promises.ts";
import type { SimClock } from "./sim-clock.ts";
import type { SimProcess } from "./sim-process.ts";

/** A moment, and for how long the queue had left all calls unanswered until then. */
interface Instant {
  readonly atMs: number;
  readonly awayMs: number;
}

/** One lease from its acquisition on, as seen from outside. */
export interface TermTruth {
  readonly lease: Lease;
  readonly process: SimProcess;
  /** When the queue granted it, and when it counted each of its renewals that it remembers. */
  readonly counted: Instant[];
  /** When the last call that the queue answered with yes was sent; null while the process knows of none. */
  sentAtMs: number | null;
  /** The process still waited for the answer that gave it the lease; a later answer has no owner and expires. */
  isExpected: boolean;
  /** Its process has asked for its release; that call may be lost. */
  isGivenBack: boolean;
  /** Given back by its own process. */
  isReleased: boolean;
  /** Another owner was granted the lease although this one had not given it back. */
  isTakenOver: boolean;
  /** The queue has told its process that it is over. */
  isFenced: boolean;
  /** Its process was stopped and gave up unfinished deliveries. */
  isAbandoned: boolean;
}

/** The holders of leases, and the processes that believe they hold them. */
export class LeaseChecker {
  private readonly terms = new Map<string, TermTruth>();
  /** The newest term of a shard and role for each process, by when its process heard of it. */
  private readonly heard = new Map<string, TermTruth>();

  /** The newest lease of a shard and role, by when the queue granted it. */
  private readonly granted = new Map<string, TermTruth>();

  constructor(
    private readonly clock: SimClock,
    private readonly watch: Watch,
    private readonly outages: Pick<Outages, "awayMs" | "awayMsSoFar">,
  ) {}

  acquired(lease: Lease, process: SimProcess): void {
    const term: TermTruth = {
      lease,
      process,
      sentAtMs: null,
      counted: [this.instant()],
      isExpected: false,
      isGivenBack: false,
      isReleased: false,
      isTakenOver: false,
      isFenced: false,
      isAbandoned: false,
    };
    const place = `${lease.shard} ${lease.role}`;
    const before = this.granted.get(place);
    if (before !== undefined && !before.isReleased) this.takeOver(before, process);
    this.granted.set(place, term);
    this.terms.set(lease.token, term);
  }

  /** The queue has counted a renewal. */
  renewed(lease: Lease): void {
    this.terms.get(lease.token)?.counted.push(this.instant());
  }

  /** An owner that renewed its lease counts as dead only after a whole term of answered looks. */
  private takeOver(before: TermTruth, process: SimProcess): void {
    before.isTakenOver = true;
    const { atMs, awayMs } = before.counted.at(-1) ?? this.instant();
    const watchedMs = this.clock.nowMs - atMs - Math.max(0, this.outages.awayMs() - awayMs);
    const isDue = watchedMs >= limits.leaseTtlMs;
    this.watch.demand(isDue, "takeover", () => `${process.name} took ${before.process.name}'s after ${watchedMs} ms`);
  }

  private instant(): Instant {
    return { atMs: this.clock.nowMs, awayMs: this.outages.awayMsSoFar() };
  }

  givenBack(lease: Lease): void {
    const term = this.terms.get(lease.token);
    if (term !== undefined) term.isGivenBack = true;
  }

  released(lease: Lease): void {
    const term = this.terms.get(lease.token);
    if (term !== undefined) term.isReleased = true;
  }

  /** The process heard that the call which it sent at `sentAtMs` succeeded. */
  confirmed(lease: Lease, sentAtMs: number): void {
    const term = this.terms.get(lease.token);
    if (term === undefined) return;
    const isNew = term.sentAtMs === null;
    // Also a renewal that is answered late: no other process can have been granted the lease before it.
    term.sentAtMs = Math.max(term.sentAtMs ?? 0, sentAtMs);
    if (!isNew) return;
    term.isExpected = this.clock.nowMs - sentAtMs < limits.leaseCompeteMs;
    this.heard.set(formatKey(term.process, lease.shard, lease.role), term);
  }

  /**
   * The queue went back in time: a lease that it does not know was never granted, and a renewal that it forgot is none
   * that others could see.
   */
  rewind(known: (shard: number, role: LeaseRole) => LeaseState | null): void {
    for (const [place, { lease, counted }] of this.granted) {
      const state = known(lease.shard, lease.role);
      if (state?.token !== lease.token) this.granted.delete(place);
      else counted.splice(state.renewals + 1);
    }
  }

  fenced(lease: Lease): void {
    const term = this.terms.get(lease.token);
    if (term !== undefined) term.isFenced = true;
  }

  abandonTerms(process: SimProcess): void {
    for (const term of this.terms.values()) if (term.process === process) term.isAbandoned = true;
  }

  /** The term that the process acts in, as far as it knows. */
  findTerm(process: SimProcess, shard: number, role: LeaseRole): TermTruth | null {
    return this.heard.get(formatKey(process, shard, role)) ?? null;
  }

  isSurelyHeld({ sentAtMs }: TermTruth): boolean {
    return sentAtMs !== null && this.clock.nowMs < sentAtMs + limits.leaseTtlMs - limits.leaseMarginMs;
  }

  /** Whether a living process knew of this lease and did not give it back. */
  isKept(token: string): boolean {
    const term = this.terms.get(token);
    return term !== undefined && term.isExpected && !term.isGivenBack && !term.process.isDead;
  }

  /** Whether what the term heard may never have been written down: its process died or gave up, or another took over. */
  hasBrokenOff({ process, isTakenOver, isAbandoned }: TermTruth): boolean {
    return process.isDead || isTakenOver || isAbandoned;
  }
}

function formatKey(process: SimProcess, shard: number, role: LeaseRole): string {
  return `${process.name} ${shard} ${role}`;
}
