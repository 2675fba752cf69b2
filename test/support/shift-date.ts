/**
 * From now on this process's wall clock is ahead of the machine's by the result of `shiftMs` at each reading. Leaves
 * monotonic time and timers alone, as on a machine whose clock is wrong.
 */
export function shiftDate(shiftMs: () => number): void {
  const RealDate = Date;
  const now = () => RealDate.now() + shiftMs();

  class ShiftedDate extends RealDate {
    constructor(...given: unknown[]) {
      // Passes on all forms of the constructor unchanged, except the one without arguments.
      super(...((given.length === 0 ? [now()] : given) as [number]));
    }

    static override now(): number {
      return now();
    }
  }

  globalThis.Date = ShiftedDate as DateConstructor;
}
