import type { QueuedJob } from "../../domain/job.ts";

/** An actor or lane that competes for slots. */
export interface Contender {
  /** Its deliveries in flight. */
  readonly inFlight: number;
  /** Cost of the delivery that it would start now, or null: it has none, and will ask again by `contend`. */
  nextCost(): number | null;
  /** Starts that delivery. `release` gives the slot back. */
  startNext(): void;
}

/** What a contender may spend in one turn: a plain message costs 1. */
const QUANTUM = 4;

/**
 * Shares a channel's delivery slots between tenants by deficit round robin (Shreedhar and Varghese, 1995).
 *
 * F1. At most `slots` deliveries are in flight.
 * F2. Contenders take turns, and their spending evens out over the turns.
 * F3. A contender with deliveries in flight gets another slot only while it holds fewer than twice the free shared
 *     slots, and never from the last quarter: tenants whose provider hangs cannot fill the slots.
 * F4. A contender with nothing in flight may use any slot: a quiet tenant's first message waits for nobody else's
 *     provider.
 */
export class FairScheduler {
  /** In the order of their turns; the first contender may be in the middle of its turn. */
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

  /** The contender starts nothing more. Its deliveries in flight are still to be released. */
  withdraw(contender: Contender): void {
    this.ring.delete(contender);
  }

  /** Takes a slot, by the same rules, for a delivery of the contender that is already in flight. False: it may not. */
  take(contender: Contender): boolean {
    if (this.used >= this.slots || !this.mayTakeSlot(contender)) return false;
    this.used += 1;
    return true;
  }

  private fill(): void {
    // A contender may call `contend` or `release` while it is asked for its next delivery: the current round covers
    // that.
    if (this.isFilling) return;
    this.isFilling = true;
    try {
      this.takeTurns();
    } finally {
      // A contender that throws must not end the sharing of slots for good.
      this.isFilling = false;
    }
  }

  /** Ends when the slots are used up, the ring is empty, or no contender may take a slot. */
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
   * The first contender that may take a slot, or null; those before it move to the end. Called after each delivery, and
   * mostly in vain when every contender has its share: then nothing moves, as after a whole round.
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
  /** Its quantum was added and is not spent; the turn goes on when it may take a slot. */
  isOpen: boolean;
}

type TurnEnd = "out of slots" | "not allowed" | "nothing to start" | "spent";

/** Cost counts pieces of 16 KiB: a long message costs its tenant more turns than a short one. */
export function deliveryCost(job: QueuedJob): number {
  return 1 + Math.floor(job.payload.length / 16_384);
}
