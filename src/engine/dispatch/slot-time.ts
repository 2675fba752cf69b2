/** After this time, half of a tenant's used slot time no longer counts. */
const HALF_LIFE_MS = 60_000;
/** A tenant whose messages take less on average soon returns any slot that it takes. */
const SHORT_MS = 2_000;
/** The weight of one message in the average: a tenant that slows down is noticed before one that recovers. */
const RISE = 1 / 4;
const FALL = 1 / 8;

/** A tenant's recently used slot time, and whether its messages take long. */
export class SlotTime {
  /**
   * Orders tenants by the slot time that they have used, with decay: its logarithm relative to time 0, so that the
   * passing of time does not change the order, and no value has to be recomputed.
   */
  used = Number.NEGATIVE_INFINITY;
  /** Since when it has waited, in any pool, for a slot with no delivery in flight (monotonic); null: it does not. */
  waitsSinceMs: number | null = null;
  private messageMs: number | null = null;
  private spentAtMs = Number.NEGATIVE_INFINITY;

  /** Whether its messages have proven to take little time. */
  get isShort(): boolean {
    return this.messageMs !== null && this.messageMs < SHORT_MS;
  }

  /** Whether they have proven to take long. Neither: their duration is unknown. */
  get isLong(): boolean {
    return this.messageMs !== null && this.messageMs >= SHORT_MS;
  }

  /** Adds the time for which a message of the tenant had a slot. */
  spent(ms: number, nowMs: number): void {
    const now = Math.log2(Math.max(ms, 1)) + nowMs / HALF_LIFE_MS;
    const [more, less] = now > this.used ? [now, this.used] : [this.used, now];
    this.used = more + Math.log2(1 + 2 ** (less - more));
    const known = this.messageMs ?? ms;
    this.messageMs = known + (ms - known) * (ms > known ? RISE : FALL);
    this.spentAtMs = nowMs;
  }

  spentSince(ms: number): boolean {
    return this.spentAtMs >= ms;
  }
}
