/**
 * Loaded before a program (`bun --preload`): its wall clock is SHIFT_CLOCK_MS ahead of the machine's, or behind it.
 * Monotonic time and timers are left as they are, as on a machine whose clock is wrong.
 */
const shiftMs = Number(process.env["SHIFT_CLOCK_MS"] ?? 0);
const RealDate = Date;
const now = () => RealDate.now() + shiftMs;

class ShiftedDate extends RealDate {
  constructor(...given: unknown[]) {
    // All forms of the constructor but the one without arguments are passed on as they came.
    super(...((given.length === 0 ? [now()] : given) as [number]));
  }

  static override now(): number {
    return now();
  }
}

globalThis.Date = ShiftedDate as DateConstructor;
