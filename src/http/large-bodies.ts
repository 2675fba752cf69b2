import { type Clock, sleep } from "../domain/clock.ts";

/** After each turn, other work gets this many times the turn's duration before the next turn. */
const REST_FACTOR = 3;

/**
 * Runs the work on large bodies (parsing, validation, serializing) one piece at a time, each in its own turn of the event loop.
 * Together they take at most a quarter of the process, and a small request waits for at most one piece.
 */
export class LargeBodies {
  private last: Promise<void> = Promise.resolve();

  constructor(private readonly clock: Clock) {}

  /** Runs synchronous work when its turn comes. */
  async inTurn<T>(work: () => T): Promise<T> {
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const before = this.last;
    this.last = done;
    await before;
    const startedMs = this.clock.monotonicMs();
    try {
      return work();
    } finally {
      void sleep(this.clock, REST_FACTOR * (this.clock.monotonicMs() - startedMs)).then(resolve);
    }
  }
}
