import type { Clock } from "../../src/domain/clock.ts";
import type { Dice } from "./dice.ts";
import type { SimClock } from "./sim-clock.ts";

/** 2026-01-15: when every simulated world begins. */
export const EPOCH_MS = 1_768_435_200_000;

/**
 * One process: everything that runs in it enters by `enter`, be it a timer or an answer from the wire.
 *
 * P1. A dead process runs no code and sends no more messages, except those on the wire already. P2. A paused process
 * runs no code; timers and answers that were due meanwhile run when it resumes, each in their order. Its monotonic
 * clock went on. P3. Its wall clock is its own, and may step.
 */
export class SimProcess {
  readonly clock: Clock;
  /** How far its wall clock is from the world's. */
  skewMs = 0;
  isToldToStop = false;
  /** Called before anything runs in the process: the place where it may crash or pause. */
  hazard: () => void = () => {};
  private life: "running" | "paused" | "dead" = "running";
  private readonly heldTimers: (() => void)[] = [];
  private readonly heldAnswers: (() => void)[] = [];

  constructor(
    readonly name: string,
    private readonly world: SimClock,
    private readonly dice: Dice,
  ) {
    this.clock = {
      nowMs: () => EPOCH_MS + Math.floor(world.nowMs) + this.skewMs,
      monotonicMs: () => world.nowMs,
      setTimer: (delayMs, run) => {
        let cancelled = false;
        const fire = () => {
          if (!cancelled) run();
        };
        const timer = world.at(delayMs, () => this.enter(fire, "timer"));
        return {
          cancel: () => {
            cancelled = true;
            timer.cancel();
          },
        };
      },
    };
  }

  get isRunning(): boolean {
    return this.life === "running";
  }

  get isDead(): boolean {
    return this.life === "dead";
  }

  enter(run: () => void, source: "timer" | "answer"): void {
    if (this.isRunning) this.hazard();
    if (this.isRunning) run();
    else if (!this.isDead) (source === "timer" ? this.heldTimers : this.heldAnswers).push(run);
  }

  crash(): void {
    this.life = "dead";
  }

  pause(forMs: number): void {
    if (this.life !== "running") return;
    this.life = "paused";
    this.world.at(forMs, () => this.resume());
  }

  /** Ends a pause before its time. */
  resume(): void {
    if (this.life !== "paused") return;
    this.life = "running";
    this.catchUp();
  }

  /** One thing a step, straight on and not by `enter`: a second pause in between would turn their order round. */
  private catchUp(): void {
    if (!this.isRunning) return;
    const preferred = this.dice.chance(0.5) ? this.heldTimers : this.heldAnswers;
    const run = preferred.shift() ?? this.heldTimers.shift() ?? this.heldAnswers.shift();
    if (run === undefined) return;
    run();
    this.world.at(0, () => this.catchUp());
  }
}
