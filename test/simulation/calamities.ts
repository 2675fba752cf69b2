import { limits } from "../../src/domain/limits.ts";
import type { Snapshot } from "../support/memory-redis/keyspace.ts";
import type { Dice } from "./dice.ts";
import type { SimClock } from "./sim-clock.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Weather } from "./weather.ts";

/** The parts that a calamity can strike. */
export interface Exposed {
  readonly clock: SimClock;
  readonly dice: Dice;
  readonly weather: Weather;
  drainOne(): void;
  stepClockOfOne(byMs: number): void;
  stepQueueClock(byMs: number): void;
  /** The queue is not heard of for so long, by one process or by all. */
  silence(forMs: number, isForAll: boolean): void;
  breakHalf(forMs: number): void;
  /** A relay hangs, refuses or is slow for so long. */
  troubleRelay(forMs: number): void;
  /** No process remembers its tenants. */
  changePlan(): void;
  setQueueUp(isUp: boolean): void;
  setEventStoreUp(isUp: boolean): void;
  snapshot(): Snapshot;
  /** The queue comes back as it was then. */
  forgetSince(snapshot: Snapshot): void;
}

/** Brings the faults that come from time to time, until `end`. */
export class Calamities {
  private isOver = false;

  constructor(private readonly exposed: Exposed) {}

  begin(): void {
    const { exposed } = this;
    const { weather, dice } = exposed;
    this.every(weather.drainEveryMs, () => exposed.drainOne());
    this.every(weather.clockStepEveryMs, () => exposed.stepClockOfOne(this.step(3_600_000)));
    this.every(weather.queueClockStepEveryMs, () => exposed.stepQueueClock(this.step(3_600_000)));
    const silenceMs = () => dice.between(limits.leaseTtlMs, 3 * limits.leaseTtlMs);
    this.every(weather.silenceEveryMs, () => exposed.silence(silenceMs(), dice.chance(0.5)));
    // As long as a process takes to find out.
    this.every(weather.halfOpenEveryMs, () => exposed.breakHalf(dice.between(5_000, 7_000)));
    this.every(weather.relayTroubleEveryMs, () => exposed.troubleRelay(dice.between(1_000, weather.relayTroubleMs)));
    this.every(weather.planChangeEveryMs, () => exposed.changePlan());
    this.every(weather.eventStoreAwayEveryMs, () => this.eventStoreAway(dice.between(500, 20_000)));
    this.every(weather.queueRestartEveryMs, () => this.queueRestart(dice.between(100, 8_000)));
  }

  end(): void {
    this.isOver = true;
    this.exposed.setQueueUp(true);
    this.exposed.setEventStoreUp(true);
  }

  private every(meanMs: number, strike: () => void): void {
    const { clock, dice } = this.exposed;
    if (meanMs === 0) return;
    clock.at(2 * meanMs * dice.next(), () => {
      if (this.isOver) return;
      strike();
      this.every(meanMs, strike);
    });
  }

  /** Mostly seconds, sometimes as much as `mostMs`. */
  private step(mostMs: number): number {
    const { dice } = this.exposed;
    const size = dice.chance(0.8) ? dice.between(1, 5_000) : dice.between(1, mostMs);
    return dice.chance(0.5) ? size : -size;
  }

  private eventStoreAway(forMs: number): void {
    this.exposed.setEventStoreUp(false);
    this.exposed.clock.at(forMs, () => this.exposed.setEventStoreUp(true));
  }

  private queueRestart(forMs: number): void {
    const { exposed } = this;
    const goDown = (then: () => void) => {
      if (this.isOver) return;
      exposed.setQueueUp(false);
      then();
      exposed.clock.at(forMs, () => exposed.setQueueUp(true));
    };
    if (!exposed.weather.queueForgets) return goDown(() => {});
    const snapshot = exposed.snapshot();
    exposed.clock.at(exposed.dice.between(0, 1_000), () => goDown(() => exposed.forgetSince(snapshot)));
  }
}

/** Crashes and pauses come between any two steps of a process. */
export function createHazard(
  process: SimProcess,
  parts: Pick<Exposed, "dice"> & { now(): Weather; crash(): void; paused(): void },
): () => void {
  const { dice } = parts;
  return () => {
    const { crash, pause } = parts.now();
    if (crash > 0 && dice.chance(crash)) parts.crash();
    else if (pause > 0 && dice.chance(pause)) {
      parts.paused();
      process.pause(dice.between(10, 3 * limits.leaseTtlMs));
    }
  };
}
