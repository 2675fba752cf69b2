import type { Clock } from "../../src/domain/clock.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";

/** Its deadlines come ten times as late, on a machine that may be busy: work ends because it is done. */
export const patientClock: Clock = {
  ...systemClock,
  setTimer: (delayMs, run) => systemClock.setTimer(delayMs * 10, run),
};
