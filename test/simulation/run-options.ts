import { QUEUE_SHARE, type Tenant } from "../../src/core/tenant.ts";
import { aTenant } from "../support/tenants.ts";
import type { Dice } from "./dice.ts";
import { drawWeather, type Weather } from "./weather.ts";

/** What a run is made of; drawn from its seed, or written by hand in a scenario. */
export interface RunOptions {
  readonly weather: Weather;
  readonly processes: number;
  readonly shards: number;
  readonly tenants: readonly Tenant[];
  readonly jobs: number;
  /** Deliveries that a process has room for. */
  readonly slots: number;
  /** Steps of the phase with faults. */
  readonly steps: number;
  /** All jobs at once, or over the whole phase. */
  readonly isBurst: boolean;
  /** How long the provider takes at most, by tenant. */
  readonly slownessMs: ReadonlyMap<string, number>;
  /** The provider tells what becomes of messages by calls that it repeats, as chat's does; else a log does, as for e-mail. */
  readonly callsBack: boolean;
}

export function drawOptions(dice: Dice, steps: number | null): RunOptions {
  const weather = drawWeather(dice);
  const shards = dice.between(1, 4);
  const isPaced = dice.chance(0.5);
  const tenants = Array.from({ length: dice.chance(0.2) ? dice.between(7, 14) : dice.between(1, 6) }, (_, i) =>
    aTenant({
      tenantId: `tenant-${i}`,
      shard: dice.between(0, shards - 1),
      plan: {
        name: "drawn",
        requestsPerMinute: 1_000_000,
        deliveriesPerSecond: isPaced && dice.chance(0.4) ? dice.between(2, 40) : null,
        ...QUEUE_SHARE,
      },
    }),
  );
  const drawnSteps = dice.between(800, 4_000);
  return {
    weather,
    processes: dice.pick([1, 1, 2, 3]),
    shards,
    tenants,
    jobs: dice.chance(1 / 16) ? dice.between(200, 400) : dice.between(5, 80),
    slots: dice.pick([4, 8, 16, 128]),
    steps: steps ?? drawnSteps,
    isBurst: dice.chance(0.5),
    slownessMs: new Map(tenants.map(({ tenantId }) => [tenantId, dice.chance(0.3) ? dice.between(500, 4_000) : 60])),
    callsBack: dice.chance(0.5),
  };
}
