import { type Clock, within } from "./clock.ts";
import { oneAtATime } from "./one-at-a-time.ts";

interface Times {
  /** A value is reused for this long, however many callers request it. */
  readonly freshMs: number;
  /** The longest wait of a caller. */
  readonly waitMs: number;
  readonly clock: Clock;
}

/**
 * Reads on demand, at most once at a time, unless the last value is recent. Null: the read returned null, or has not
 * ended in time; it continues, and its value serves the next callers. Rejects only if `read` does.
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
    return within({ clock, ms: waitMs, late: () => null }, readOnce);
  };
}
