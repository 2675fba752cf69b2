import { SeededRandom } from "../../support/seeded-random.ts";

/*
 * `FUZZ_SECONDS=600 bun test test/channels/email/fuzz-html.test.ts` searches for ten minutes per property instead of a
 * moment; `FUZZ_SEED` starts at a failure's seed.
 */
const SECONDS = Number(process.env["FUZZ_SECONDS"] ?? 0);
const FIRST_SEED = Number(process.env["FUZZ_SEED"] ?? 1);
const RUNS = 1_500;

/** Options of a test that checks a property. */
export const FUZZ_TIMEOUT_MS = (SECONDS + 60) * 1000;

/** Picks by a seed. */
export class Picker {
  private readonly random: SeededRandom;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
  }

  /** A whole number from 0 up to, not including, `end`. */
  below(end: number): number {
    return Math.floor(this.random.next() * end);
  }

  of<T>(choices: readonly T[]): T {
    const chosen = choices[this.below(choices.length)];
    if (chosen === undefined) throw new Error("there is nothing to choose from");
    return chosen;
  }

  /** Up to `most` pieces, one after the other; one in ten is torn or doubled. */
  text(pieces: readonly string[], most: number): string {
    let text = "";
    for (let left = this.below(most) + 1; left > 0; left -= 1) {
      const piece = this.of(pieces);
      const change = this.below(30);
      if (change === 0) text += piece.slice(this.below(piece.length));
      else if (change === 1) text += piece.repeat(this.below(4));
      else if (change === 2)
        text += piece.slice(0, this.below(piece.length) + 1) + String.fromCharCode(this.below(0x180));
      else text += piece;
    }
    return text;
  }
}

/** Checks the property with one picker after another; a failure's error contains the seed. */
export async function fuzz(property: (pick: Picker) => void | Promise<void>): Promise<void> {
  const endMs = performance.now() + SECONDS * 1000;
  for (let run = 0; run < RUNS || performance.now() < endMs; run += 1) {
    const seed = FIRST_SEED + run;
    try {
      await property(new Picker(seed));
    } catch (error) {
      throw new Error(`FUZZ_SEED=${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }
}
