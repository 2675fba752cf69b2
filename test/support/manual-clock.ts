import type { Clock } from "../../src/domain/clock.ts";

/** The machine's clock, which a test can set forward: due timers then fire soon. */
export class ManualClock implements Clock {
  private aheadMs = 0;

  nowMs(): number {
    return Date.now() + this.aheadMs;
  }

  monotonicMs(): number {
    return performance.now() + this.aheadMs;
  }

  setTimer(delayMs: number, run: () => void) {
    const atMs = this.monotonicMs() + delayMs;
    // Polls more often than necessary, because the clock may have been set forward.
    const timer = setInterval(
      () => {
        if (this.monotonicMs() < atMs) return;
        clearInterval(timer);
        run();
      },
      Math.min(delayMs, 5),
    );
    return { cancel: () => clearInterval(timer) };
  }

  forward(ms: number): void {
    this.aheadMs += ms;
  }
}
