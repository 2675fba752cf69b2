import type { Clock } from "./clock.ts";
import type { Telemetry } from "./telemetry.ts";

/** Whether a part that work waits for can be used, and since when it is so. */
export interface Health {
  readonly up: boolean;
  /** Unix milliseconds; null: nothing is known yet. */
  readonly sinceMs: number | null;
}

export interface HealthWatchOptions {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Name of the gauge: 1 while the part is up, 0 while it is down. */
  readonly gauge: string;
  /** Log messages at the beginning and at the end of an outage. */
  readonly messages: { readonly down: string; readonly up: string };
  /** Failures in a row that make an outage; default 1. */
  readonly failuresMin?: number;
}

/** Tells operators of a part that is down: once when it goes, once when it is back, and a gauge in between. */
export class HealthWatch {
  private state: Health = { up: true, sinceMs: null };
  private failures = 0;

  constructor(private readonly options: HealthWatchOptions) {}

  get health(): Health {
    return this.state;
  }

  succeeded(): void {
    this.failures = 0;
    if (this.state.up && this.state.sinceMs !== null) return;
    if (!this.state.up) this.options.telemetry.log("info", this.options.messages.up, { away_ms: this.ageMs() });
    this.become(true);
  }

  failed(why: string): void {
    this.failures += 1;
    if (!this.state.up || this.failures < (this.options.failuresMin ?? 1)) return;
    this.options.telemetry.log("error", this.options.messages.down, { error: why });
    this.become(false);
  }

  private become(up: boolean): void {
    const { clock, telemetry, gauge } = this.options;
    this.state = { up, sinceMs: clock.nowMs() };
    telemetry.gauge(gauge, up ? 1 : 0);
  }

  private ageMs(): number {
    return Math.max(0, this.options.clock.nowMs() - (this.state.sinceMs ?? 0));
  }
}
