/** After this time, half of what a tenant has used counts no more. */
const HALF_LIFE_MS = 60_000;
/** A tenant whose messages take less on average soon gives back whatever slot it takes. */
const SHORT_MS = 2_000;
/** What one message changes the average by: a tenant that slows down is noticed before one that recovers. */
const RISE = 1 / 4;
const FALL = 1 / 8;

/** The slot time that a tenant has used of late, and whether its messages take long. */
export class SlotTime {
  /**
   * Orders tenants by the slot time that they have used, with decay: its logarithm as of time 0, so that no passing of
   * time changes the order, and no value has to be computed anew.
   */
  used = Number.NEGATIVE_INFINITY;
  /** Since when it has waited for a slot with nothing in flight, wherever (monotonic); null: it does not. */
  waitsSinceMs: number | null = null;
  private messageMs: number | null = null;
  private spentAtMs = Number.NEGATIVE_INFINITY;

  /** Its messages have shown that they take little time. */
  get isShort(): boolean {
    return this.messageMs !== null && this.messageMs < SHORT_MS;
  }

  /** They have shown that they take long. Neither: nothing is known of them. */
  get isLong(): boolean {
    return this.messageMs !== null && this.messageMs >= SHORT_MS;
  }

  /** A message of the tenant has held a slot for so long. */
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
