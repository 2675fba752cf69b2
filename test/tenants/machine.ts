import type { Clock } from "../../src/domain/clock.ts";
import type { Random } from "../../src/domain/random.ts";
import type { ChangeFeed } from "../../src/domain/tenants/tenant.ts";

/**
 * The latest moment at which other processes must see a change. A second is promised; the rest is for machines that
 * stall for a moment.
 */
export const STALE_MS_MAX = 4_000;

/** The machine's clock, whose monotonic time can be set forward. Timers keep to real time. */
export class SkippingClock implements Clock {
  private skippedMs = 0;

  skip(ms: number): void {
    this.skippedMs += ms;
  }

  nowMs(): number {
    return Date.now();
  }

  monotonicMs(): number {
    return performance.now() + this.skippedMs;
  }

  setTimer(delayMs: number, run: () => void) {
    const timer = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(timer) };
  }
}

export const machineRandom: Random = {
  next: () => Math.random(),
  fill: (bytes) => crypto.getRandomValues(bytes),
};

/** Loses every message. */
export const deadFeed: ChangeFeed = { announce: () => undefined, onChange: () => () => undefined };

/** Delivers every message at once. */
export function liveFeed(): ChangeFeed {
  const listeners = new Set<(tenantId: string | null) => void>();
  return {
    announce: (tenantId) => {
      for (const listener of listeners) listener(tenantId);
    },
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
