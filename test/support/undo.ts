/** Undoes a test's changes, in reverse order, whether or not the test passed. */
export class Undo {
  private readonly steps: (() => unknown)[] = [];

  add<T>(thing: T, end: (thing: T) => unknown): T {
    this.steps.push(() => end(thing));
    return thing;
  }

  /** Runs every step, then throws the first failure. */
  async run(): Promise<void> {
    const failures: unknown[] = [];
    for (let step = this.steps.pop(); step !== undefined; step = this.steps.pop()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
