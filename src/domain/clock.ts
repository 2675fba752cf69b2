/** A pending call that can still be cancelled. */
export interface Timer {
  cancel(): void;
}

/** The engine's source of time. Production passes the machine's clock, the tests a virtual one. */
export interface Clock {
  /** Returns the milliseconds since 1970-01-01 UTC. May step in either direction. */
  nowMs(): number;
  /** Returns the milliseconds since an arbitrary start. Never goes back; the only clock for leases and timeouts. */
  monotonicMs(): number;
  /** Calls `run` once, not before `delayMs` have passed. */
  setTimer(delayMs: number, run: () => void): Timer;
}

/**
 * Returns the work's answer or, after `ms`, the result of `late`; a later answer is dropped. The signal aborts once it is
 * decided.
 */
export async function within<T, L>(
  { clock, ms, late }: { readonly clock: Clock; readonly ms: number; readonly late: () => L },
  work: (over: AbortSignal) => Promise<T>,
): Promise<T | L> {
  const over = new AbortController();
  const tooLate = Promise.withResolvers<void>();
  const timer = clock.setTimer(ms, tooLate.resolve);
  try {
    return await Promise.race([work(over.signal), tooLate.promise.then(late)]);
  } finally {
    timer.cancel();
    over.abort();
  }
}

/** Waits for the end of the work, but no longer than `ms`. Rejects as the work does. */
export async function waitAtMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  await within({ clock, ms, late: () => undefined }, () => work);
}

/** Resolves after `delayMs`, or at once when `signal` aborts (it never rejects: the caller checks its own state). */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      timer.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = clock.setTimer(delayMs, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}
