import type { Clock } from "../../src/domain/clock.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";

/** Its deadlines come ten times as late: what ends ends because it is done, on a machine that may be busy. */
export const patientClock: Clock = {
  ...systemClock,
  setTimer: (delayMs, run) => systemClock.setTimer(delayMs * 10, run),
};
