import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";
import type { Telemetry } from "./telemetry.ts";

/** Time, chance, and where it is told what happens: what every part that repeats its work takes as arguments. */
export interface RuntimePorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
}
