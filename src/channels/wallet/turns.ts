/**
 * Work on one thing at a time, in the order of asking; on different things, side by side.
 *
 * Invariants:
 * T1. Of a key, one piece of work runs at most.
 * T2. A key is remembered only while there is work on it.
 */
export class Turns {
  private readonly last = new Map<string, Promise<unknown>>();

  /** Runs `work` when all that was asked for before with this key has ended, however it ended. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.last.get(key) === mine) this.last.delete(key);
    }
  }
}
