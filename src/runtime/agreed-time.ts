import type { Clock } from "../domain/clock.ts";

export interface AgreedTimePorts {
  readonly clock: Clock;
  /** The clocks of others (unix ms). */
  readonly others: readonly (() => Promise<number>)[];
  /** What was agreed on before, over restarts; null: nothing was. */
  readonly mark: { read(): Promise<number | null>; write(ms: number): Promise<void> };
  /** The time of the newest event; null: there is none. */
  newestEventMs(): Promise<number | null>;
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

/**
 * The time by which what is old is removed for ever.
 *
 * T1. It is never later than any of the clocks: a single one that is ahead removes nothing.
 * T2. It goes on by at most a day in an hour of this process, also over restarts: all clocks may be ahead, for a minute or at a
 *     start, and after a long stop what has become old leaves within some hours.
 */
export class AgreedTime {
  /** When it last went on, by the monotonic clock. */
  private wentOnAtMs: number | null = null;

  constructor(private readonly ports: AgreedTimePorts) {}

  /** Unix ms. Rejects if one of the clocks cannot be read, or the mark. */
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
