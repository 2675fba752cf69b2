import type { Clock } from "../domain/clock.ts";

export interface AgreedTimePorts {
  readonly clock: Clock;
  /** Other clocks (unix ms). */
  readonly others: readonly (() => Promise<number>)[];
  /** The last agreed time, kept across restarts; null: there is none. */
  readonly mark: { read(): Promise<number | null>; write(ms: number): Promise<void> };
  /** Returns the time of the newest event; null: there is none. */
  newestEventMs(): Promise<number | null>;
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/**
 * The time that decides when old data is removed for good.
 *
 * T1. It is never later than any of the clocks: a single one that is ahead does not remove data.
 * T2. It advances by at most a day per hour of this process, also across restarts: all clocks may be ahead, for a
 *     minute or at a start, and after a long stop old data is removed within some hours.
 */
export class AgreedTime {
  /** When it last advanced, by the monotonic clock. */
  private wentOnAtMs: number | null = null;

  constructor(private readonly ports: AgreedTimePorts) {}

  /** Returns unix ms. Rejects if one of the clocks, or the mark, cannot be read. */
  async nowMs(): Promise<number> {
    const { clock, others, mark, newestEventMs } = this.ports;
    const earliestMs = Math.min(clock.nowMs(), ...(await Promise.all(others.map((nowMs) => nowMs()))));
    const known = await mark.read();
    const markMs = known ?? Math.min((await newestEventMs()) ?? earliestMs, earliestMs);
    const atMs = clock.monotonicMs();
    this.wentOnAtMs ??= atMs;
    const isHourOver = atMs - this.wentOnAtMs >= HOUR_MS;
    if (isHourOver) this.wentOnAtMs = atMs;
    const nextMs = Math.max(markMs, isHourOver ? Math.min(earliestMs, markMs + DAY_MS) : markMs);
    if (nextMs !== known) await mark.write(nextMs);
    return Math.min(earliestMs, nextMs);
  }
}
