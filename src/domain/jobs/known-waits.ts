import type { Clock } from "../clock.ts";

/** Some 10 MB. Jobs beyond this number are looked up by each sweep. */
const WAITS_MAX = 100_000;

/** Jobs that a sweep found waiting for a time: later sweeps need not look them up until then. */
export class KnownWaits {
  private readonly untilMsOf = new Map<string, number>();

  constructor(private readonly clock: Pick<Clock, "nowMs">) {}

  /** `untilMs`: unix. */
  note(id: string, untilMs: number): void {
    if (this.untilMsOf.size < WAITS_MAX) this.untilMsOf.set(id, untilMs);
  }

  /** Unix ms; null: it is not known to wait. */
  untilMs(id: string): number | null {
    const untilMs = this.untilMsOf.get(id) ?? 0;
    return untilMs > this.clock.nowMs() ? untilMs : null;
  }
}
