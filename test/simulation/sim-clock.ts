import { drainMicrotasks } from "bun:jsc";
import type { Timer } from "../../src/domain/clock.ts";
import type { Dice } from "./dice.ts";

interface Entry {
  readonly atMs: number;
  /** Decides the order of timers that are due at one instant. */
  readonly tie: number;
  run: (() => void) | null;
}

/**
 * The one clock that everything in a simulated world runs on.
 *
 * C1. Time passes only between two steps, never while code runs. C2. Timers due at the same millisecond run in an order
 * that the seed decides: this is where interleavings come from. C3. A step ends when every promise that it resolved has
 * run its course.
 */
export class SimClock {
  /** Milliseconds since the world began. */
  nowMs = 0;
  steps = 0;
  private readonly heap: Entry[] = [];

  constructor(private readonly dice: Dice) {}

  at(delayMs: number, run: () => void): Timer {
    const entry: Entry = { atMs: this.nowMs + Math.max(0, Math.ceil(delayMs)), tie: this.dice.next(), run };
    this.push(entry);
    return {
      cancel: () => {
        entry.run = null;
      },
    };
  }

  /** Runs the next thing that is due. Returns false when no timer is left. */
  step(): boolean {
    for (let next = this.pop(); next !== undefined; next = this.pop()) {
      if (next.run === null) continue;
      this.nowMs = next.atMs;
      this.steps += 1;
      next.run();
      drainMicrotasks();
      return true;
    }
    return false;
  }

  private push(entry: Entry): void {
    const { heap } = this;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(entry, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = entry;
  }

  private pop(): Entry | undefined {
    const { heap } = this;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let at = 0;
    while (true) {
      const left = heap[2 * at + 1];
      if (left === undefined) break;
      const right = heap[2 * at + 2];
      const isRight = right !== undefined && isBefore(right, left);
      const child = isRight ? right : left;
      if (!isBefore(child, last)) break;
      heap[at] = child;
      at = 2 * at + (isRight ? 2 : 1);
    }
    heap[at] = last;
    return top;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs === b.atMs ? a.tie < b.tie : a.atMs < b.atMs;
}
