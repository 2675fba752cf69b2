/** Whoever the scheduler shares the slots between: a tenant's actor. */
export interface Contender {
  /** Deliveries of its own that are under way. */
  readonly inFlight: number;
  /** Cost of the delivery that it would start now, or null: it has none, and will ask again by `contend`. */
  nextCost(): number | null;
  /** Starts that delivery. The slot is given back by `release`. */
  startNext(): void;
}

/** What a contender may spend in one turn: a plain message costs 1 (see `deliveryCost`). */
const QUANTUM = 4;

/**
 * Shares a process's delivery slots between tenants by deficit round robin (Shreedhar and Varghese, 1995).
 *
 * F1. No more than `slots` deliveries are under way. F2. While a slot may be used and somebody can use it, it is used.
 * F3. Contenders take turns; within some rounds each spends the same. F4. Nobody who holds a fair share of the slots or
 * more takes from the last quarter: a provider that hangs can fill its tenant's share, never its neighbours'.
 */
export class FairScheduler {
  private readonly ring = new Map<Contender, { deficit: number }>();
  /** Contenders that are in the ring or have deliveries under way. */
  private readonly active = new Set<Contender>();
  private used = 0;
  private readonly reserved: number;

  constructor(private readonly slots: number) {
    this.reserved = Math.floor(slots / 4);
  }

  get slotsUsed(): number {
    return this.used;
  }

  /** The contender may have something to start. */
  contend(contender: Contender): void {
    if (!this.ring.has(contender)) this.ring.set(contender, { deficit: 0 });
    this.active.add(contender);
    this.fill();
  }

  /** A delivery of the contender is over. */
  release(contender: Contender): void {
    this.used -= 1;
    if (contender.inFlight === 0 && !this.ring.has(contender)) this.active.delete(contender);
    this.fill();
  }

  /** The contender starts nothing more; what it has under way goes on and is released. */
  withdraw(contender: Contender): void {
    this.ring.delete(contender);
    if (contender.inFlight === 0) this.active.delete(contender);
  }

  /** Ends when the slots are used up, the ring is empty, or a whole round has started nothing. */
  private fill(): void {
    let idleTurns = 0;
    while (this.used < this.slots && idleTurns < this.ring.size) {
      const first = this.ring.entries().next();
      if (first.done) return;
      const [contender, turn] = first.value;
      // To the back of the ring, whatever this turn brings.
      this.ring.delete(contender);
      this.ring.set(contender, turn);
      idleTurns = this.takeTurn(contender, turn) ? 0 : idleTurns + 1;
    }
  }

  /** Whether the turn changed anything, so that another round is worth while. */
  private takeTurn(contender: Contender, turn: { deficit: number }): boolean {
    if (!this.mayTakeSlot(contender)) return false;
    turn.deficit += QUANTUM;
    while (this.mayTakeSlot(contender)) {
      const cost = contender.nextCost();
      if (cost === null) {
        this.ring.delete(contender);
        if (contender.inFlight === 0) this.active.delete(contender);
        return true;
      }
      if (cost > turn.deficit) return true;
      turn.deficit -= cost;
      this.used += 1;
      contender.startNext();
    }
    return true;
  }

  private mayTakeSlot(contender: Contender): boolean {
    const free = this.slots - this.used;
    if (free > this.reserved) return true;
    // One more than there are, so that a newcomer finds its share free.
    const share = Math.max(1, Math.floor(this.slots / (this.active.size + 1)));
    return free > 0 && contender.inFlight < share;
  }
}
