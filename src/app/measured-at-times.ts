import type { Clock } from "../domain/clock.ts";
import { oneAtATime } from "../domain/one-at-a-time.ts";

interface Times {
  /** However many readers ask, it is measured this often at most. */
  readonly freshMs: number;
  /** The longest that a reader waits. */
  readonly waitMs: number;
  readonly clock: Clock;
}

/**
 * Measures when somebody asks, unless that was done a moment ago. Resolves when the values are fresh, or after `waitMs`; never
 * rejects if `measure` does not.
 */
export function measuredAtTimes(measure: () => Promise<void>, { freshMs, waitMs, clock }: Times): () => Promise<void> {
  let measuredAtMs = Number.NEGATIVE_INFINITY;
  const measureOnce = oneAtATime(async () => {
    await measure();
    measuredAtMs = clock.monotonicMs();
  });
  return async () => {
    if (clock.monotonicMs() - measuredAtMs < freshMs) return;
    const late = Promise.withResolvers<void>();
    const timer = clock.setTimer(waitMs, late.resolve);
    await Promise.race([measureOnce(), late.promise]);
    timer.cancel();
  };
}
