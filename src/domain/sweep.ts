import { shortened } from "./back-off.ts";
import { Repeated } from "./repeated.ts";
import type { RuntimePorts } from "./runtime-ports.ts";
import { logFailure } from "./telemetry.ts";

export interface SweepPlan {
  readonly everyMs: number;
  /** Logged when a sweep fails; the next one tries again. */
  readonly failure: string;
}

/** The share of a pause that chance takes off: processes that were started together, or waited for the same outage, do not sweep together. */
const JITTER = 0.1;

/** Looks for work now and then and does it, from `start` until `stop`. */
export abstract class Sweep {
  private readonly rounds: Repeated;

  protected constructor(
    private readonly means: RuntimePorts,
    private readonly plan: SweepPlan,
  ) {
    const pauseMs = () => shortened(plan.everyMs, JITTER, means.random);
    this.rounds = new Repeated(() => this.sweep(), means.clock, pauseMs);
  }

  /** Begins the first sweep at once. Safe to repeat. */
  start(): void {
    this.rounds.start();
  }

  /** Waits for the sweep in progress. Safe to repeat. */
  stop(): Promise<void> {
    return this.rounds.stop();
  }

  /** Sweeps once. Never rejects. */
  async sweep(): Promise<void> {
    try {
      await this.work();
    } catch (error) {
      logFailure(this.means.telemetry, this.plan.failure, error);
    }
  }

  /** Work that takes long looks at it, and ends soon. */
  protected get isStopping(): boolean {
    return this.rounds.isStopping;
  }

  /** One sweep. */
  protected abstract work(): Promise<void>;
}
