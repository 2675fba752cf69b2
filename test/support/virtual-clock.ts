import type { Clock, Timer } from "../../src/domain/clock.ts";

interface Scheduled {
  readonly atMs: number;
  readonly run: () => void;
}

/** Time that passes only when the test says so. */
export class VirtualClock implements Clock {
  private readonly timers = new Set<Scheduled>();
  private passedMs = 0;

  constructor(private startMs = Date.UTC(2026, 0, 15)) {}

  nowMs(): number {
    return this.startMs + this.passedMs;
  }

  monotonicMs(): number {
    return this.passedMs;
  }

  /** Pending timers. */
  get timersSet(): number {
    return this.timers.size;
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const timer = { atMs: this.passedMs + delayMs, run };
    this.timers.add(timer);
    return { cancel: () => this.timers.delete(timer) };
  }

  /** Lets time pass, timer by timer, and lets the woken code run in between. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.passedMs + ms;
    for (let next = this.dueBy(untilMs); next !== null; next = this.dueBy(untilMs)) {
      this.timers.delete(next);
      this.passedMs = Math.max(this.passedMs, next.atMs);
      next.run();
      await settleMicrotasks();
    }
    this.passedMs = untilMs;
  }

  private dueBy(untilMs: number): Scheduled | null {
    let first: Scheduled | null = null;
    for (const timer of this.timers) {
      if (timer.atMs <= untilMs && (first === null || timer.atMs < first.atMs)) first = timer;
    }
    return first;
  }
}

/** Lets the continuations of all resolved promises run. */
async function settleMicrotasks(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}
