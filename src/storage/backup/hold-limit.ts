import type { Clock, Timer } from "../../domain/clock.ts";

/** Limits how long stores are held for some work: `limitMs` in total from the first `within` on. */
export class HoldLimit {
  private readonly over = new AbortController();
  private readonly passed = Promise.withResolvers<never>();
  private readonly begun: Promise<unknown>[] = [];
  private timer: Timer | null = null;

  /** `why` creates the error with which a hold ends. */
  constructor(
    private readonly clock: Clock,
    private readonly limitMs: number,
    private readonly why: () => Error,
  ) {
    // It may reject while no caller waits for it.
    this.passed.promise.catch(() => undefined);
  }

  /** Aborts when the time is over: work should then end soon. */
  get signal(): AbortSignal {
    return this.over.signal;
  }

  /** Settles with `work`, or rejects when the time is over, while the work may still run. */
  within<T>(work: () => Promise<T>): Promise<T> {
    if (this.signal.aborted) return this.passed.promise;
    this.timer ??= this.clock.setTimer(this.limitMs, () => this.end());
    const running = work();
    this.begun.push(running);
    return Promise.race([running, this.passed.promise]);
  }

  /** Resolves when no work is running, and none can begin. */
  async settled(): Promise<void> {
    this.timer?.cancel();
    this.end();
    await Promise.allSettled(this.begun);
  }

  private end(): void {
    if (this.signal.aborted) return;
    const error = this.why();
    this.over.abort(error);
    this.passed.reject(error);
  }
}
