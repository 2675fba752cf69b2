import type { Clock } from "../../domain/clock.ts";

/** What a shard's time is, by the queue's answers and this process's monotonic clock. */
export class ShardTime {
  private base: { readonly shardMs: number; readonly atMs: number } | null = null;

  constructor(private readonly clock: Clock) {}

  /** Null: nothing has been heard of it yet. */
  nowMs(): number | null {
    if (this.base === null) return null;
    return Math.floor(this.base.shardMs + this.clock.monotonicMs() - this.base.atMs);
  }

  /**
   * The queue's answer came just now. The later of two estimates is nearer: an answer is on its way for a while, and the
   * shard's time is never set back, also where the queue has forgotten what was agreed on.
   */
  heard(shardMs: number): void {
    const estimate = this.nowMs();
    if (estimate === null || estimate < shardMs) this.base = { shardMs, atMs: this.clock.monotonicMs() };
  }
}
