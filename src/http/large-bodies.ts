import { type Clock, sleep } from "../domain/clock.ts";

/** Of each turn's time so many times as much is left to all other work before the next. */
const REST_FACTOR = 3;

/**
 * Lets the work on large bodies (parsing, checking, writing) be done one piece at a time, each in a turn of the event loop
 * of its own: together it takes at most a quarter of the process, and a small request waits for no more than one piece.
 */
export class LargeBodies {
  private last: Promise<void> = Promise.resolve();

  constructor(private readonly clock: Clock) {}

  /** Does the work, which must not wait for anything, when its turn has come. */
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
