import type { Clock, Timer } from "../../../domain/clock.ts";
import { Pace } from "../../../domain/pace.ts";
import { walletLimits } from "../limits.ts";

/** The origin of a call: a job, which can be retried later, or an API caller, who waits for the response. */
export type Urgency = "job" | "request";

interface Waiter {
  readonly go: () => void;
}

/**
 * Paces the calls to one issuer (Google: 20 calls a second), spaced evenly, so no second exceeds the limit.
 *
 * Invariants:
 * P1. Calls start at least `1000 / googleCallsPerSecond` ms apart.
 * P2. The number of waiting calls is bounded, and with it the wait; calls beyond it must be retried later.
 * P3. While both kinds wait, jobs and requests alternate: neither can starve the other.
 */
export class IssuerPace {
  private readonly waiting: Readonly<Record<Urgency, Set<Waiter>>> = { job: new Set(), request: new Set() };
  private readonly pace = new Pace(0);
  private lastTurn: Urgency = "job";
  private timer: Timer | null = null;

  constructor(private readonly clock: Clock) {}

  /** Whether no call waits and past calls no longer affect the pace. */
  get isIdle(): boolean {
    return this.timer === null && this.untilNextMs === 0;
  }

  /** Milliseconds until a call requested now could start, at worst. */
  get waitMs(): number {
    const queued = this.waiting.job.size + this.waiting.request.size;
    return this.untilNextMs + (queued * 1000) / googleCallsPerSecond;
  }

  /** Resolves to true when the call may start; to false if too many calls wait already, or once `signal` aborts. */
  take(urgency: Urgency, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.isIdle) {
      this.pace.take(this.clock.monotonicMs(), googleCallsPerSecond);
      return Promise.resolve(true);
    }
    const queue = this.waiting[urgency];
    if (queue.size >= WAITING_MAX[urgency]) return Promise.resolve(false);
    return new Promise((resolve) => {
      const onAbort = () => {
        queue.delete(waiter);
        resolve(false);
      };
      const go = () => {
        signal.removeEventListener("abort", onAbort);
        resolve(true);
      };
      const waiter: Waiter = { go };
      queue.add(waiter);
      signal.addEventListener("abort", onAbort, { once: true });
      this.timer ??= this.clock.setTimer(this.untilNextMs, () => this.next());
    });
  }

  private next(): void {
    this.timer = null;
    const urgency = this.turn();
    if (urgency === null) return;
    // A timer may fire a fraction of a millisecond early.
    const leftMs = this.untilNextMs;
    if (leftMs > 0) {
      this.timer = this.clock.setTimer(leftMs, () => this.next());
      return;
    }
    const [first] = this.waiting[urgency];
    this.lastTurn = urgency;
    this.pace.take(this.clock.monotonicMs(), googleCallsPerSecond);
    if (first !== undefined) {
      this.waiting[urgency].delete(first);
      first.go();
    }
    if (this.turn() !== null) this.timer = this.clock.setTimer(this.untilNextMs, () => this.next());
  }

  private get untilNextMs(): number {
    return this.pace.waitMs(this.clock.monotonicMs(), googleCallsPerSecond);
  }

  private turn(): Urgency | null {
    const other: Urgency = this.lastTurn === "job" ? "request" : "job";
    if (this.waiting[other].size > 0) return other;
    return this.waiting[this.lastTurn].size > 0 ? this.lastTurn : null;
  }
}

const { googleCallsPerSecond } = walletLimits;
const WAITING_MAX: Readonly<Record<Urgency, number>> = {
  job: walletLimits.googleJobsWaitingMax,
  request: walletLimits.googleRequestsWaitingMax,
};
