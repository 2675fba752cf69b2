export interface RecentFailuresOptions {
  readonly windowMs: number;
  /** So many in a window, and no more. */
  readonly failuresMax: number;
  readonly callersMax: number;
}

/** Who failed lately, and when. Bounded: whose last failure is the oldest is forgotten first. */
export class RecentFailures {
  /** The times of each caller's failures, oldest first. Callers in the order of their last one. */
  private readonly timesMs = new Map<string, readonly number[]>();

  constructor(private readonly options: RecentFailuresOptions) {}

  get size(): number {
    return this.timesMs.size;
  }

  /** How long the caller has to wait before it may fail again, in ms; 0: it may. */
  waitMs(caller: string, nowMs: number): number {
    const { windowMs, failuresMax } = this.options;
    const recent = this.recent(caller, nowMs);
    const [oldest] = recent;
    return oldest === undefined || recent.length < failuresMax ? 0 : oldest + windowMs - nowMs;
  }

  /** Answers how many there are with this one. */
  add(caller: string, nowMs: number): number {
    const recent = [...this.recent(caller, nowMs), nowMs];
    this.timesMs.delete(caller);
    this.timesMs.set(caller, recent);
    for (const [first, times] of this.timesMs) {
      const isOver = (times.at(-1) ?? 0) + this.options.windowMs <= nowMs;
      if (!isOver && this.timesMs.size <= this.options.callersMax) break;
      this.timesMs.delete(first);
    }
    return recent.length;
  }

  private recent(caller: string, nowMs: number): readonly number[] {
    const times = this.timesMs.get(caller) ?? [];
    return times.filter((time) => time + this.options.windowMs > nowMs);
  }
}
