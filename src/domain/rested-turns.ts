import { type Clock, sleep } from "./clock.ts";
import { FairTurns } from "./fair-turns.ts";

/** After each turn, other work gets this many times the turn's duration before the next turn. */
const REST_FACTOR = 3;

/**
 * Work that blocks everything else while it runs: one piece at a time, owners in turn. All of it together takes at most
 * a quarter of the process's time, as long as no rest is cut short.
 */
export class RestedTurns {
  private readonly turns = new FairTurns({ all: 1, each: 1 });

  /** `restMsMax`: for work that mostly waits for others and needs no rest. */
  constructor(
    private readonly clock: Clock,
    private readonly restMsMax = Number.POSITIVE_INFINITY,
  ) {}

  /** Returns how many pieces of the owner's work are waiting. */
  waiting(owner: string): number {
    return this.turns.waiting(owner);
  }

  /** Runs the work when its turn has come, and returns its result. */
  inTurn<T>(owner: string, work: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.turns.enter(owner, async () => {
        const startedMs = this.clock.monotonicMs();
        try {
          resolve(await work());
        } catch (error) {
          reject(error);
        }
        const tookMs = this.clock.monotonicMs() - startedMs;
        await sleep(this.clock, Math.min(REST_FACTOR * tookMs, this.restMsMax));
      });
    });
  }
}
