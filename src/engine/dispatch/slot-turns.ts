import type { Clock, Timer } from "../../domain/clock.ts";
import type { SlotTime } from "./slot-time.ts";
import { type HeapEntry, TurnHeap } from "./turn-heap.ts";

/** A trial that lasts longer has served its purpose: the next one begins. */
const TRIAL_MS = 1_000;
/** A contender that has waited longer gets no trial, so that newcomers get one. */
const FRESH_MS = 2_000;

/** The number of slots, and how many of them are free. */
export interface Room {
  readonly size: number;
  readonly free: number;
}

/** The properties of a contender that `SlotTurns` needs. */
export interface Turn {
  readonly time: Pick<SlotTime, "used" | "isShort" | "isLong" | "waitsSinceMs">;
}

/** A contender that waits or occupies slots. */
interface Entry<C> extends HeapEntry {
  readonly contender: C;
  held: number;
  isWaiting: boolean;
  /** Its values when it was put into its heap. */
  used: number;
  isShort: boolean;
  order: number;
}

/**
 * Chooses the contender for the next free slot. Slots are a resource of time: a tenant is charged for how long it
 * occupies them, not for the number of its messages.
 *
 * S1. The next is the contender that holds the fewest slots; of these, the one that has used the least slot time.
 * S2. Contenders whose messages have not proven to take little time hold at most three quarters of the slots: a slot of
 *     the last quarter is soon free again, however long the others' messages take.
 * S3. A contender gets another slot only while it holds fewer than twice the free ones that it may take. The last
 *     sixteenth is for trials alone.
 * S4. Trials: one contender at a time may take any slot if it has no delivery in flight, its messages are not known to
 *     take long, and it has just begun to wait; the newest first, and the last but one also one whose messages take
 *     little time. The next trial begins when that delivery ends, or after `TRIAL_MS`. So a newcomer need not wait for
 *     a round of earlier contenders, and a crowd whose messages all turn out to take long leaves slots for later ones.
 */
export class SlotTurns<C extends Turn> {
  private readonly entries = new Map<C, Entry<C>>();
  private readonly short = new TurnHeap<Entry<C>>(isBefore);
  private readonly others = new TurnHeap<Entry<C>>(isBefore);
  /** Slots of contenders whose messages have not proven to take little time. */
  private heldByOthers = 0;
  /** In the order in which they began to wait; some may have left. */
  private arrivals: Entry<C>[] = [];
  private order = 0;
  private onTrial: C | null = null;
  private trialEnd: Timer | null = null;

  constructor(
    private readonly clock: Clock,
    /** Called when another trial may begin. */
    private readonly onTrialOver: () => void,
  ) {}

  get isEmpty(): boolean {
    return this.short.all.length + this.others.all.length === 0;
  }

  /** Contenders that wait, in no order. */
  get waiting(): readonly C[] {
    return [...this.short.all, ...this.others.all].map(({ contender }) => contender);
  }

  /** Adds a contender that waits for a turn. */
  add(contender: C): void {
    const entry = this.getEntry(contender);
    if (entry.isWaiting && entry.used === contender.time.used) return;
    const isArrival = !entry.isWaiting && entry.held === 0;
    this.update(entry, { held: entry.held, isWaiting: true });
    if (isArrival) this.arrives(entry);
  }

  delete(contender: C): void {
    const entry = this.entries.get(contender);
    if (entry === undefined || !entry.isWaiting) return;
    this.update(entry, { held: entry.held, isWaiting: false });
  }

  /**
   * Returns the next waiting contender that may take a slot; with `isGood`, the next that satisfies it, which requires
   * a check of each.
   */
  next(room: Room, isGood?: (contender: C) => boolean): C | null {
    const short = this.findFirst(this.short, this.leftTo(true, room), isGood);
    const other = this.findFirst(this.others, this.leftTo(false, room), isGood);
    if (short !== null && (other === null || isBefore(short, other))) return short.contender;
    if (other !== null) return other.contender;
    const trial = this.onTrial === null ? this.nextTrial(room) : null;
    return trial !== null && isGood?.(trial) !== false ? trial : null;
  }

  /** Whether a contender may take a slot if its turn has come. */
  may(contender: C, room: Room): boolean {
    if (this.mayWithoutTrial(contender, room)) return true;
    const entry = this.entries.get(contender);
    return room.free > 0 && this.onTrial === null && this.mayTry(entry ?? { contender, held: 0 });
  }

  mayWithoutTrial(contender: C, room: Room): boolean {
    return (this.entries.get(contender)?.held ?? 0) < 2 * this.leftTo(contender.time.isShort, room);
  }

  /** Records that it takes a slot. `room`: its value before. */
  takes(contender: C, room: Room): void {
    if (!this.mayWithoutTrial(contender, room)) this.begins(contender);
    contender.time.waitsSinceMs = null;
    const entry = this.getEntry(contender);
    this.update(entry, { held: entry.held + 1, isWaiting: entry.isWaiting });
  }

  /** Records that a delivery of the contender is over. */
  gaveBack(contender: C): void {
    if (contender === this.onTrial) {
      this.trialEnd?.cancel();
      this.onTrial = null;
    }
    const entry = this.getEntry(contender);
    this.update(entry, { held: entry.held - 1, isWaiting: entry.isWaiting });
    if (entry.held === 0 && entry.isWaiting) this.arrives(entry);
  }

  private begins(contender: C): void {
    this.trialEnd?.cancel();
    this.onTrial = contender;
    this.trialEnd = this.clock.setTimer(TRIAL_MS, () => {
      this.onTrial = null;
      this.onTrialOver();
    });
  }

  private getEntry(contender: C): Entry<C> {
    const known = this.entries.get(contender);
    if (known !== undefined) return known;
    const { used, isShort } = contender.time;
    const entry = { contender, held: 0, isWaiting: false, used, isShort, order: 0, place: 0 };
    this.entries.set(contender, entry);
    return entry;
  }

  /** Moves it to its current heap and position. */
  private update(entry: Entry<C>, { held, isWaiting }: Pick<Entry<C>, "held" | "isWaiting">): void {
    const { contender } = entry;
    const { used, isShort } = contender.time;
    if (entry.isWaiting) this.chooseHeap(entry).remove(entry);
    if (!entry.isShort) this.heldByOthers -= entry.held;
    Object.assign(entry, { held, isWaiting, used, isShort, order: (this.order += 1) });
    if (!isShort) this.heldByOthers += held;
    if (isWaiting) this.chooseHeap(entry).add(entry);
    else if (held === 0) this.entries.delete(contender);
  }

  private mayTry({ contender: { time }, held }: Pick<Entry<C>, "contender" | "held">): boolean {
    const nowMs = this.clock.monotonicMs();
    return held === 0 && !time.isLong && nowMs - (time.waitsSinceMs ?? nowMs) < FRESH_MS;
  }

  private nextTrial({ free }: Room): C | null {
    if (free <= 0) return null;
    for (let entry = this.arrivals.at(-1); entry !== undefined; entry = this.arrivals.at(-1)) {
      if (entry.isWaiting && this.mayTry(entry)) return entry.contender;
      this.arrivals.pop();
    }
    const { first } = this.short;
    return first !== undefined && first.held === 0 && free > 1 ? first.contender : null;
  }

  private arrives(entry: Entry<C>): void {
    entry.contender.time.waitsSinceMs ??= this.clock.monotonicMs();
    this.arrivals.push(entry);
    if (this.arrivals.length <= 2 * this.entries.size + 64) return;
    this.arrivals = this.arrivals.filter((each) => each.isWaiting);
  }

  /** Returns the first of a heap if it may take a slot: if it may not, none after it may. */
  private findFirst(heap: TurnHeap<Entry<C>>, left: number, isGood?: (contender: C) => boolean): Entry<C> | null {
    const { first } = heap;
    if (first === undefined || first.held >= 2 * left) return null;
    if (isGood === undefined) return first;
    let best: Entry<C> | null = null;
    for (const entry of heap.all) {
      if (entry.held >= 2 * left || (best !== null && isBefore(best, entry))) continue;
      if (isGood(entry.contender)) best = entry;
    }
    return best;
  }

  private chooseHeap({ isShort }: Entry<C>): TurnHeap<Entry<C>> {
    return isShort ? this.short : this.others;
  }

  /** Returns the number of free slots that a contender may take. */
  private leftTo(isShort: boolean, { size, free }: Room): number {
    const quarter = Math.floor(size / 4);
    const left = free - Math.ceil(quarter / 4);
    return isShort ? left : Math.min(left, size - quarter - this.heldByOthers);
  }
}

function isBefore<C>(one: Entry<C>, other: Entry<C>): boolean {
  if (one.held !== other.held) return one.held < other.held;
  return one.used === other.used ? one.order < other.order : one.used < other.used;
}
