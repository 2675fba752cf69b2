import { limits } from "../../domain/limits.ts";

/**
 * Spaces deliveries evenly: at most `perSecond` per second, with a burst of `paceBurstMs` worth after a pause (the
 * generic cell rate algorithm, ITU-T I.371). Stores a single number, so the cost does not depend on the rate.
 */
export class Pacer {
  /** When the next delivery is due by the even spacing (monotonic ms). */
  private nextMs = Number.NEGATIVE_INFINITY;

  /** Returns the milliseconds until a delivery may start; 0: now. `perSecond` null: no limit. */
  waitMs(nowMs: number, perSecond: number | null): number {
    if (perSecond === null) return 0;
    // It is further away only if the last delivery started at a slower pace.
    this.nextMs = Math.min(this.nextMs, nowMs + Math.max(limits.paceBurstMs, 1000 / perSecond));
    return Math.max(0, this.nextMs - burstMs(perSecond) - nowMs);
  }

  /** Counts a delivery that starts. */
  take(nowMs: number, perSecond: number | null): void {
    if (perSecond !== null) this.nextMs = Math.max(nowMs, this.nextMs) + 1000 / perSecond;
  }

  /** Returns the milliseconds until past deliveries no longer matter. */
  settledInMs(nowMs: number): number {
    return Math.max(0, this.nextMs - nowMs);
  }
}

/** Returns the rest of the burst after its first delivery. */
function burstMs(perSecond: number): number {
  return Math.max(0, limits.paceBurstMs - 1000 / perSecond);
}
