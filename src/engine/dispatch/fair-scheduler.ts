/** Whoever the scheduler shares the slots between: an actor. */
export interface Contender {
  /** Deliveries of its own that are under way. */
  readonly inFlight: number;
  /** Cost of the delivery that it would start now, or null: it has none, and will ask again by `contend`. */
  nextCost(): number | null;
  /** Starts that delivery. The slot is given back by `release`. */
  startNext(): void;
}

/** What a contender may spend in one turn: a plain message costs 1. */
const QUANTUM = 4;

/**
 * Shares a channel's delivery slots between tenants by deficit round robin (Shreedhar and Varghese, 1995).
 *
 * F1. No more than `slots` deliveries are under way. F2. Contenders take turns, and what they spend in them evens out.
 * F3. Who has a delivery under way takes another only while it has less than twice as many as are left for all, and
 * never from the last quarter: tenants whose provider hangs cannot fill the slots. F4. Who has none under way may use
 * any slot: a quiet tenant's first message waits for nobody's provider.
 */
export class FairScheduler {
  /** In the order of their turns; the first one's turn may be under way. */
  private readonly ring = new Map<Contender, Turn>();
  private used = 0;
  private isFilling = false;
  private readonly shared: number;

  constructor(private readonly slots: number) {
    this.shared = slots - Math.floor(slots / 4);
  }

  get slotsUsed(): number {
    return this.used;
  }

  /** The contender may have something to start. */
  contend(contender: Contender): void {
    if (!this.ring.has(contender)) this.ring.set(contender, { deficit: 0, isOpen: false });
    this.fill();
  }

  /** A delivery of the contender is over. */
  release(): void {
    this.used -= 1;
    this.fill();
  }

  /** The contender starts nothing more. What it has under way is still to be released. */
  withdraw(contender: Contender): void {
    this.ring.delete(contender);
  }

  /** Takes a slot for a delivery of the contender that is in flight already, by the same rules. False: it may not. */
  take(contender: Contender): boolean {
    if (this.used >= this.slots || !this.mayTakeSlot(contender)) return false;
    this.used += 1;
    return true;
  }

  private fill(): void {
    // Who is asked for its next delivery may contend or release meanwhile: the round that is going on sees to it.
    if (this.isFilling) return;
    this.isFilling = true;
    this.takeTurns();
    this.isFilling = false;
  }

  /** Ends when the slots are used up, the ring is empty, or nobody may take one. */
  private takeTurns(): void {
    while (this.used < this.slots) {
      const first = this.nextInTurn();
      if (first === null) return;
      const [contender, turn] = first;
      const end = this.takeTurn(contender, turn);
      if (end === "out of slots") return;
      this.ring.delete(contender);
      if (end !== "nothing to start") this.ring.set(contender, turn);
      if (end === "spent") turn.isOpen = false;
    }
  }

  /**
   * The first that may take a slot, or null. Those before it go to the end. Asked after each delivery, and mostly in vain
   * where all have their share: then nothing moves, as after a whole round.
   */
  private nextInTurn(): readonly [Contender, Turn] | null {
    let passed = 0;
    for (const entry of this.ring) {
      if (this.mayTakeSlot(entry[0])) {
        this.moveToEnd(passed);
        return entry;
      }
      passed += 1;
    }
    return null;
  }

  private moveToEnd(count: number): void {
    let left = count;
    for (const [contender, turn] of this.ring) {
      if (left === 0) return;
      left -= 1;
      this.ring.delete(contender);
      this.ring.set(contender, turn);
    }
  }

  private takeTurn(contender: Contender, turn: Turn): TurnEnd {
    while (this.used < this.slots) {
      if (!this.mayTakeSlot(contender)) return "not allowed";
      if (!turn.isOpen) {
        turn.isOpen = true;
        turn.deficit += QUANTUM;
      }
      const cost = contender.nextCost();
      if (cost === null) return "nothing to start";
      if (cost > turn.deficit) return "spent";
      turn.deficit -= cost;
      this.used += 1;
      contender.startNext();
    }
    return "out of slots";
  }

  private mayTakeSlot({ inFlight }: Contender): boolean {
    return inFlight === 0 || inFlight < 2 * (this.shared - this.used);
  }
}

interface Turn {
  deficit: number;
  /** Its quantum has been added and is not spent; the turn goes on when it may take a slot. */
  isOpen: boolean;
}

type TurnEnd = "out of slots" | "not allowed" | "nothing to start" | "spent";
