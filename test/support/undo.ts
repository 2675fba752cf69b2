/** What a test has started, ended in the opposite order, whatever became of the test. */
export class Undo {
  private readonly steps: (() => unknown)[] = [];

  add<T>(thing: T, end: (thing: T) => unknown): T {
    this.steps.push(() => end(thing));
    return thing;
  }

  /** Every step is tried; the first failure is thrown at the end. */
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
