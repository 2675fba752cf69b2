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
