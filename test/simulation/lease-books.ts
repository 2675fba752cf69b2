import type { Lease, LeaseRole } from "../../src/core/journal.ts";
import { limits } from "../../src/core/limits.ts";
import type { SimClock } from "./sim-clock.ts";
import type { SimProcess } from "./sim-process.ts";

/** One lease from its acquisition on, as seen from outside. */
export interface TermTruth {
  readonly lease: Lease;
  readonly process: SimProcess;
  /** When the last call that the journal answered with yes was sent; null while the process knows of none. */
  sentAtMs: number | null;
  /** The process still waited for the answer that gave it the lease; what comes later belongs to nobody and expires. */
  isExpected: boolean;
  /** Its process has asked for its release; that call may be lost. */
  isGivenBack: boolean;
  /** Given back by its own process: all its work was over. */
  isReleased: boolean;
  /** Its process gave up what it could not finish: it was told to, or that its lease is over. */
  isAbandoned: boolean;
}

/** Who holds, and who believes to hold, which lease. */
export class LeaseBooks {
  private readonly terms = new Map<string, TermTruth>();
  /** The newest term of a shard and role for each process, by when its process heard of it. */
  private readonly heard = new Map<string, TermTruth>();

  constructor(private readonly clock: SimClock) {}

  acquired(lease: Lease, process: SimProcess): void {
    this.terms.set(lease.token, {
      lease,
      process,
      sentAtMs: null,
      isExpected: false,
      isGivenBack: false,
      isReleased: false,
      isAbandoned: false,
    });
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
    // What is answered too late extends nothing.
    if (isNew || this.isSurelyHeld(term)) term.sentAtMs = Math.max(term.sentAtMs ?? 0, sentAtMs);
    if (!isNew) return;
    term.isExpected = this.clock.nowMs - sentAtMs < limits.leaseCompeteMs;
    this.heard.set(keyOf(term.process, lease.shard, lease.role), term);
  }

  fenced(lease: Lease): void {
    const term = this.terms.get(lease.token);
    if (term !== undefined) term.isAbandoned = true;
  }

  abandonAllOf(process: SimProcess): void {
    for (const term of this.terms.values()) if (term.process === process) term.isAbandoned = true;
  }

  /** The term that the process acts in, as far as it knows. */
  termOf(process: SimProcess, shard: number, role: LeaseRole): TermTruth | null {
    return this.heard.get(keyOf(process, shard, role)) ?? null;
  }

  isSurelyHeld({ sentAtMs }: TermTruth): boolean {
    return sentAtMs !== null && this.clock.nowMs < sentAtMs + limits.leaseTtlMs - limits.leaseMarginMs;
  }

  /** Whether a living process knew of this lease and did not give it back. */
  isKept(token: string): boolean {
    const term = this.terms.get(token);
    return term !== undefined && term.isExpected && !term.isGivenBack && !term.process.isDead;
  }

  /** Whether everything that the term began was finished and written down. */
  hasEndedWell(token: string): boolean {
    const term = this.terms.get(token);
    return term !== undefined && term.isReleased && !term.isAbandoned;
  }
}

function keyOf(process: SimProcess, shard: number, role: LeaseRole): string {
  return `${process.name} ${shard} ${role}`;
}
