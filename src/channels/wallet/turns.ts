/**
 * Runs work with the same key one at a time, in order of request; work with different keys runs concurrently.
 *
 * Invariants:
 * T1. At most one piece of work runs per key.
 * T2. A key is remembered only while it has work.
 */
export class Turns {
  private readonly last = new Map<string, Promise<unknown>>();

  /** Runs `work` once all earlier work with this key has ended, whether it succeeded or failed. */
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
