import type { Clock } from "../clock.ts";

/** Some 10 MB. What is beyond is asked for by each sweep. */
const WAITS_MAX = 100_000;

/** What one sweep has found to wait for a time: the next ones need not ask for it until then. */
export class KnownWaits {
  private readonly untilMsOf = new Map<string, number>();

  constructor(private readonly clock: Pick<Clock, "nowMs">) {}

  /** `untilMs`: unix. */
  note(id: string, untilMs: number): void {
    if (this.untilMsOf.size < WAITS_MAX) this.untilMsOf.set(id, untilMs);
  }

  /** Unix ms; null: it does not wait, or no longer, as far as is known. */
  untilMs(id: string): number | null {
    const untilMs = this.untilMsOf.get(id) ?? 0;
    return untilMs > this.clock.nowMs() ? untilMs : null;
  }
}
