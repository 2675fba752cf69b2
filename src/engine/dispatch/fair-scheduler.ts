import type { Clock } from "../../domain/clock.ts";
import { type Room, SlotTurns, type Turn } from "./slot-turns.ts";

/** An actor or lane that competes for slots. */
export interface Contender extends Turn {
  /** Whether it has a delivery to start now. If not, it calls `contend` later. */
  isReady(): boolean;
  /** Starts that delivery. `release` gives the slot back. */
  startNext(): void;
}

/**
 * Shares a channel's delivery slots between contenders by the turns of `SlotTurns`: at most `slots` deliveries are in
 * flight.
 */
export class FairScheduler {
  private readonly turns: SlotTurns<Contender>;
  private used = 0;
  private isFilling = false;

  constructor(
    private readonly slots: number,
    clock: Clock,
  ) {
    this.turns = new SlotTurns(clock, () => this.fill());
  }

  get slotsUsed(): number {
    return this.used;
  }

  /** Notes that the contender may have a delivery to start. */
  contend(contender: Contender): void {
    this.turns.add(contender);
    this.fill();
  }

  /** Releases the slot of a delivery that is over. */
  release(contender: Contender): void {
    this.used -= 1;
    this.turns.gaveBack(contender);
    this.fill();
  }

  /** Removes the contender, which starts no more deliveries. Its deliveries in flight are still to be released. */
  withdraw(contender: Contender): void {
    this.turns.delete(contender);
  }

  /**
   * Takes a slot for a delivery of the contender that is already in flight, but no trial slot. False: it may not take
   * one.
   */
  take(contender: Contender): boolean {
    if (!this.turns.mayWithoutTrial(contender, this.room)) return false;
    this.turns.takes(contender, this.room);
    this.used += 1;
    return true;
  }

  private get room(): Room {
    return { size: this.slots, free: this.slots - this.used };
  }

  private fill(): void {
    // A contender may call `contend` or `release` from `isReady` or `startNext`: the current round covers that.
    if (this.isFilling) return;
    this.isFilling = true;
    try {
      this.takeTurns();
    } finally {
      // A contender that throws must not stop the sharing of slots for good.
      this.isFilling = false;
    }
  }

  /** Ends when the slots are used up, or no waiting contender may take one. */
  private takeTurns(): void {
    for (let next = this.turns.next(this.room); next !== null; next = this.turns.next(this.room)) {
      if (!next.isReady()) {
        this.turns.delete(next);
        continue;
      }
      this.turns.takes(next, this.room);
      this.used += 1;
      next.startNext();
    }
  }
}
