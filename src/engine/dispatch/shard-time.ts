import type { Clock } from "../../domain/clock.ts";

/** Estimates a shard's time from the queue's answers and this process's monotonic clock. */
export class ShardTime {
  private base: { readonly shardMs: number; readonly atMs: number } | null = null;

  constructor(private readonly clock: Clock) {}

  /** Null: the queue has not answered yet. */
  nowMs(): number | null {
    if (this.base === null) return null;
    return Math.floor(this.base.shardMs + this.clock.monotonicMs() - this.base.atMs);
  }

  /**
   * Takes the time from an answer of the queue that has just arrived. The later of two estimates is nearer: an answer
   * takes a while to arrive, and the shard's time never goes back, not even after the queue has lost its state.
   */
  heard(shardMs: number): void {
    const estimate = this.nowMs();
    if (estimate === null || estimate < shardMs) this.base = { shardMs, atMs: this.clock.monotonicMs() };
  }
}
