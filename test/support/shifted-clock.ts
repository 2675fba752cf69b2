/**
 * Loaded before a program (`bun --preload`): sets its wall clock SHIFT_CLOCK_MS ahead of the machine's, or behind it.
 * Leaves monotonic time and timers alone, as on a machine whose clock is wrong.
 */
const shiftMs = Number(process.env["SHIFT_CLOCK_MS"] ?? 0);
const RealDate = Date;
const now = () => RealDate.now() + shiftMs;

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
