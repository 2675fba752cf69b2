import type { Clock } from "../core/clock.ts";

/** Answers that differ from the estimate by more are a step of the shard's time, and not the way that they came. */
const STEP_MS = 1_000;

/** What a shard's time is, by the journal's answers and this process's monotonic clock. */
export class ShardTime {
  private base: { readonly shardMs: number; readonly atMs: number } | null = null;

  constructor(private readonly clock: Clock) {}

  /** Null: nothing has been heard of it yet. */
  nowMs(): number | null {
    if (this.base === null) return null;
    return Math.floor(this.base.shardMs + this.clock.monotonicMs() - this.base.atMs);
  }

  /** The journal's answer came just now. The later of two estimates is nearer: an answer is on its way for a while. */
  heard(shardMs: number): void {
    const estimate = this.nowMs();
    const isBehind = estimate !== null && estimate > shardMs && estimate - shardMs < STEP_MS;
    if (!isBehind) this.base = { shardMs, atMs: this.clock.monotonicMs() };
  }
}
