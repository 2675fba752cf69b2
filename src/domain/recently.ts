import type { Clock } from "./clock.ts";
import { oneAtATime } from "./one-at-a-time.ts";

interface Times {
  /** However many ask, a value is used again for this long. */
  readonly freshMs: number;
  /** The longest that anybody waits. */
  readonly waitMs: number;
  readonly clock: Clock;
}

/**
 * Reads when somebody asks, at most once at a time, unless it read a value a moment ago. Null: the read gave none, or has not
 * ended in time; it goes on, and its value counts for those who ask next. Rejects only if `read` does.
 */
export function recently<T>(read: () => Promise<T | null>, { freshMs, waitMs, clock }: Times): () => Promise<T | null> {
  let known: { readonly value: T; readonly atMs: number } | null = null;
  const readOnce = oneAtATime(async () => {
    const value = await read();
    if (value !== null) known = { value, atMs: clock.monotonicMs() };
    return value;
  });
  return async () => {
    if (known !== null && clock.monotonicMs() - known.atMs < freshMs) return known.value;
    const late = Promise.withResolvers<null>();
    const timer = clock.setTimer(waitMs, () => late.resolve(null));
    try {
      return await Promise.race([readOnce(), late.promise]);
    } finally {
      timer.cancel();
    }
  };
}
