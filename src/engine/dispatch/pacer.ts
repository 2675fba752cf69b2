import { limits } from "../../domain/limits.ts";

/**
 * Spaces deliveries evenly: at most `perSecond` of them a second, with a burst of `paceBurstMs` worth after a pause
 * (the generic cell rate algorithm, ITU-T I.371). Keeps one number, so it costs the same at any rate.
 */
export class Pacer {
  /** When the next delivery is due by the even spacing (monotonic ms). */
  private nextMs = Number.NEGATIVE_INFINITY;

  /** Milliseconds until a delivery may start; 0 now. `perSecond` null is no limit. */
  waitMs(nowMs: number, perSecond: number | null): number {
    if (perSecond === null) return 0;
    return Math.max(0, this.nextMs - burstMs(perSecond) - nowMs);
  }

  /** A delivery starts. */
  take(nowMs: number, perSecond: number | null): void {
    if (perSecond !== null) this.nextMs = Math.max(nowMs, this.nextMs) + 1000 / perSecond;
  }

  /** Milliseconds until the past deliveries matter no more. */
  settledInMs(nowMs: number): number {
    return Math.max(0, this.nextMs - nowMs);
  }
}

/** What remains of the burst once the first delivery has taken its own place. */
function burstMs(perSecond: number): number {
  return Math.max(0, limits.paceBurstMs - 1000 / perSecond);
}
