import { type Clock, sleep } from "../domain/clock.ts";
import { UnavailableError } from "../domain/errors.ts";

const PATIENCE_MS = 60_000;
const PAUSE_MS = 500;

/**
 * Repeats a call of a start while the store that it needs is away: on a machine that has much else to do it answers late, and a
 * start that ended for that would have to begin again there. Rejects with the last failure if the store is still away after a
 * minute, and at once with one that may have had an effect.
 */
export async function untilAnswered<T>(clock: Clock, call: () => Promise<T>): Promise<T> {
  const giveUpAtMs = clock.monotonicMs() + PATIENCE_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof UnavailableError) || clock.monotonicMs() >= giveUpAtMs) throw error;
    }
    await sleep(clock, PAUSE_MS);
  }
}
