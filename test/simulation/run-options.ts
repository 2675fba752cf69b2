import { QUEUE_SHARE, type Tenant } from "../../src/domain/tenants/tenant.ts";
import { aTenant } from "../support/tenants.ts";
import type { Dice } from "./dice.ts";
import { drawNeighbours, drawWeather, type Weather } from "./weather.ts";

/** The options of a run; drawn from its seed, or written by hand in a scenario. */
export interface RunOptions {
  readonly weather: Weather;
  readonly processes: number;
  readonly shards: number;
  readonly tenants: readonly Tenant[];
  readonly jobs: number;
  /** Deliveries that a process has room for. */
  readonly slots: number;
  /** Deliveries that it has room for beside these, to relays that are not prompt. */
  readonly patientSlots: number;
  /** Deliveries that one relay takes at one time; absent: any number. */
  readonly relayConnections?: number;
  /** Steps of the phase with faults. */
  readonly steps: number;
  /** All jobs at once, or over the whole phase. */
  readonly isBurst: boolean;
  /** How long the provider takes at most, by tenant. */
  readonly slownessMs: ReadonlyMap<string, number>;
  /** Messages go by relays that can be away or slow as a whole; without, all deliveries share the channel's slots. */
  readonly hasRelays: boolean;
  /** The relay of each tenant that has its own; all others use the platform's. */
  readonly relays: ReadonlyMap<string, string>;
  /** Well-behaved tenants whose relay is prompt: others' trouble must not delay them. Empty: all share the faults. */
  readonly healthy: ReadonlySet<string>;
  /** Tenants that send as large messages as they may. */
  readonly heavy: ReadonlySet<string>;
  /** The provider tells what becomes of messages by calls that it repeats, as chat's does; else a log does, as for e-mail. */
  readonly callsBack: boolean;
  /** The run goes on until finished jobs have left the queue. */
  readonly waitsForLeave: boolean;
  /** How many shards a call of the recorder may be about: one where the queue is a cluster. */
  readonly shardsPerRecord: "all" | "one";
}

export function drawOptions(dice: Dice, steps: number | null): RunOptions {
  const hasNeighbours = dice.chance(1 / 4);
  const weather = hasNeighbours ? drawNeighbours(dice) : drawWeather(dice);
  const shards = dice.between(1, 4);
  const tenants = drawTenants(dice, { shards, hasNeighbours, isCalm: weather.isCalm });
  const ids = tenants.map(({ tenantId }) => tenantId);
  const healthy = new Set(hasNeighbours ? ids.filter((_, i) => i % 2 === 1) : []);
  const drawnSteps = dice.between(800, 4_000);
  const others = ids.filter((tenantId) => !healthy.has(tenantId));
  const relays = new Map(others.filter(() => dice.chance(0.7)).map((tenantId) => [tenantId, `relay-of-${tenantId}`]));
  // Where there are healthy tenants, whoever shares the relay with them leaves it prompt.
  const maySlow = (tenantId: string) => !hasNeighbours || relays.has(tenantId);
  return {
    weather,
    processes: dice.pick([1, 1, 2, 3]),
    shards,
    tenants,
    jobs: dice.chance(1 / 16) ? dice.between(200, 400) : dice.between(5, 80),
    slots: dice.pick([4, 8, 16, 128]),
    // More than there are relays: what hangs on each of them cannot fill them.
    patientSlots: dice.pick([16, 32, 1_024]),
    steps: steps ?? drawnSteps,
    isBurst: dice.chance(0.5),
    slownessMs: new Map(
      ids.map((tenantId) => [tenantId, dice.chance(0.3) && maySlow(tenantId) ? dice.between(500, 4_000) : 60]),
    ),
    hasRelays: hasNeighbours || dice.chance(weather.isCalm ? 0.3 : 0.5),
    relays,
    healthy,
    heavy: new Set(dice.chance(0.25) && !weather.isCalm ? others.filter(() => dice.chance(0.6)) : []),
    callsBack: dice.chance(0.5),
    waitsForLeave: dice.chance(1 / 24),
    shardsPerRecord: dice.pick(["all", "all", "all", "one"]),
  };
}

interface Drawn {
  readonly shards: number;
  readonly hasNeighbours: boolean;
  readonly isCalm: boolean;
}

const GREETING = { subject: "Hello", html: "<p>Hello</p>", text: null };

function drawTenants(dice: Dice, { shards, hasNeighbours, isCalm }: Drawn): readonly Tenant[] {
  const isPaced = dice.chance(0.5);
  const isHeldShort = dice.chance(0.3);
  const hasQuotas = dice.chance(0.4) && !isCalm;
  const count = dice.chance(0.2) || hasNeighbours ? dice.between(7, 14) : dice.between(1, 6);
  return Array.from({ length: count }, (_, i) => {
    const isHealthy = hasNeighbours && i % 2 === 1;
    const deliveriesPerSecond = isPaced && dice.chance(0.4) && !isHealthy ? dice.between(2, 40) : null;
    const quota = { queuedJobsMax: dice.between(3, 30), queuedBytesMax: dice.between(1_000, 1_000_000) };
    return aTenant({
      tenantId: `tenant-${i}`,
      shard: dice.between(0, shards - 1),
      emailTemplates: new Map(dice.chance(0.3) ? [["greeting", GREETING]] : []),
      plan: {
        name: "drawn",
        requestsPerMinute: 1_000_000,
        deliveriesPerSecond,
        ...QUEUE_SHARE,
        ...(hasQuotas && dice.chance(0.5) && !isHealthy && quota),
        ...(isHeldShort && { holdMs: dice.between(2_000, hasNeighbours ? 30_000 : 300_000) }),
      },
    });
  });
}
