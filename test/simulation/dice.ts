import { SeededRandom } from "../support/seeded-random.ts";

/** Chance in the words that the simulation draws in. */
export class Dice extends SeededRandom {
  /** True with this probability. Draws even where the answer is certain, so that options do not shift what follows. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number in [min, max]. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** Mostly small, rarely near `max`: what waiting times look like. */
  skewed(max: number): number {
    return Math.floor(this.next() ** 3 * (max + 1));
  }

  /** One of the list, which must not be empty. */
  pick<T>(list: readonly T[]): T {
    const picked = list[Math.floor(this.next() * list.length)];
    if (picked === undefined) throw new Error("nothing to pick from");
    return picked;
  }

  /** A stream of chance of its own, so that one part's draws do not change another's. */
  fork(): Dice {
    return new Dice(Math.floor(this.next() * 0x1_0000_0000) | 0);
  }
}
