export interface RecentFailuresOptions {
  readonly windowMs: number;
  /** The most failures that one caller may have within a window. */
  readonly failuresMax: number;
  readonly callersMax: number;
}

/** Recent failures by caller. Bounded: the caller whose last failure is oldest is forgotten first. */
export class RecentFailures {
  /** Each caller's failure times, oldest first. Callers are ordered by their latest failure. */
  private readonly timesMs = new Map<string, readonly number[]>();

  constructor(private readonly options: RecentFailuresOptions) {}

  get size(): number {
    return this.timesMs.size;
  }

  /** How long the caller must wait before it may fail again, in ms; 0 if it may now. */
  waitMs(caller: string, nowMs: number): number {
    const { windowMs, failuresMax } = this.options;
    const recent = this.recent(caller, nowMs);
    const [oldest] = recent;
    return oldest === undefined || recent.length < failuresMax ? 0 : oldest + windowMs - nowMs;
  }

  /** Returns the caller's number of failures, including this one. */
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
