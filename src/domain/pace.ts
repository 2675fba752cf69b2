/**
 * Spaces events evenly, with a burst after a rest (the generic cell rate algorithm, ITU-T I.371). Stores a single number, so the
 * cost does not depend on the rate, which may differ from call to call.
 */
export class Pace {
  /** When the next event is due by the even spacing (monotonic ms). */
  private nextMs = Number.NEGATIVE_INFINITY;

  /** `burstMs`: after a rest, as many events may come at once as are due in this time, and always one. */
  constructor(private readonly burstMs: number) {}

  /** Milliseconds until an event may come; 0 now. `perSecond` null is no limit. `ahead`: events that come before it. */
  waitMs(nowMs: number, perSecond: number | null, ahead = 0): number {
    if (perSecond === null) return 0;
    const intervalMs = 1000 / perSecond;
    // Further away only where the last event came at a slower pace.
    this.nextMs = Math.min(this.nextMs, nowMs + Math.max(this.burstMs, intervalMs));
    // The first event of a burst has taken its own place.
    return Math.max(0, this.nextMs + ahead * intervalMs - Math.max(0, this.burstMs - intervalMs) - nowMs);
  }

  /** An event comes. */
  take(nowMs: number, perSecond: number | null): void {
    if (perSecond !== null) this.nextMs = Math.max(nowMs, this.nextMs) + 1000 / perSecond;
  }

  /** Milliseconds until past events no longer matter. */
  settledInMs(nowMs: number): number {
    return Math.max(0, this.nextMs - nowMs);
  }
}
