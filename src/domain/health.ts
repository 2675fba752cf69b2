import { BackOff } from "./back-off.ts";
import type { RuntimePorts } from "./runtime-ports.ts";

/** Whether a dependency of the service can be used, and since when. */
export interface Health {
  readonly up: boolean;
  /** Unix milliseconds; null: not known yet. */
  readonly sinceMs: number | null;
}

export interface HealthWatchOptions extends RuntimePorts {
  /** Name of the gauge: 1 while the dependency is up, 0 while it is down. */
  readonly gauge: string;
  /** Log messages at the beginning and at the end of an outage. */
  readonly messages: { readonly down: string; readonly up: string };
  /** Failures in a row that count as an outage; default 1. */
  readonly failuresMin?: number;
  /** Longest wait between two tries during an outage; default 30 s. */
  readonly tryMsMax?: number;
}

/**
 * Watches a dependency that can be down. It logs the beginning and the end of an outage once each, with a gauge in
 * between. During the outage one try at a time checks whether the dependency is back, at growing intervals; no other
 * caller has to wait for its time-out.
 */
export class HealthWatch {
  private state: Health = { up: true, sinceMs: null };
  private failures = 0;
  private readonly waits: BackOff;
  /** Monotonic. */
  private nextTryMs = 0;

  constructor(private readonly options: HealthWatchOptions) {
    this.waits = new BackOff({ firstMs: TRY_MS_MIN, maxMs: options.tryMsMax ?? TRY_MS_MAX }, options.random);
  }

  get health(): Health {
    return this.state;
  }

  /** Whether to try now. If true, the caller must report the result: `succeeded`, `failed` or `calledOff`. */
  mayTry(): boolean {
    if (this.state.up) return true;
    const nowMs = this.options.clock.monotonicMs();
    if (nowMs < this.nextTryMs) return false;
    // Blocks other tries until this one reports, or for `UNHEARD_MS` if it never does.
    this.nextTryMs = nowMs + UNHEARD_MS;
    return true;
  }

  calledOff(): void {
    this.nextTryMs = this.options.clock.monotonicMs();
  }

  succeeded(): void {
    this.failures = 0;
    if (this.state.up && this.state.sinceMs !== null) return;
    if (!this.state.up) this.options.telemetry.log("info", this.options.messages.up, { away_ms: this.ageMs() });
    this.become(true);
  }

  failed(why: string): void {
    this.failures += 1;
    if (this.state.up) this.waits.reset();
    this.nextTryMs = this.options.clock.monotonicMs() + this.waits.nextMs();
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

const TRY_MS_MIN = 1_000;
const TRY_MS_MAX = 30_000;
/** Longer than any try takes. */
const UNHEARD_MS = 60_000;
