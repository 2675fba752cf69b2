import type { Clock } from "../../domain/clock.ts";
import { limits } from "../../domain/limits.ts";

interface Pair {
  /** When the recipient's next message may go (monotonic ms). */
  nextMs: number;
  /** Until when waiting messages have been told to come back, one after the other. */
  promisedMs: number;
  spacingMs: number;
  readonly refusedAtMs: number;
}

/**
 * Recipients that a number wrote to too often, each with its own wait: six seconds at first, doubled with every further
 * refusal. Other recipients are not delayed. Bounded: the longest known is forgotten first, which costs one refusal.
 */
export class RecipientSpacing {
  /** By number and recipient, ordered by first refusal. */
  private readonly pairs = new Map<string, Pair>();

  constructor(private readonly clock: Clock) {}

  /** Milliseconds after which a message to the recipient may be tried again; 0: it is sent now. */
  enter(phoneNumberId: string, recipient: string): number {
    const key = `${phoneNumberId}/${recipient}`;
    const pair = this.pairs.get(key);
    if (pair === undefined) return 0;
    const nowMs = this.clock.monotonicMs();
    if (pair.nextMs > nowMs) return this.promise(pair, nowMs);
    pair.nextMs = nowMs + pair.spacingMs;
    return 0;
  }

  /**
   * The provider refused a message sent at `sentAtMs` (monotonic); returns after how many milliseconds it may be tried again.
   * Messages in flight together count as one refusal.
   */
  refused(phoneNumberId: string, recipient: string, sentAtMs: number): number {
    const key = `${phoneNumberId}/${recipient}`;
    const nowMs = this.clock.monotonicMs();
    const known = this.pairs.get(key);
    if (known !== undefined && sentAtMs < known.refusedAtMs) return this.promise(known, nowMs);
    const spacingMs = Math.min(
      Math.max(limits.chatPairSpacingMs, 2 * (known?.spacingMs ?? 0)),
      limits.chatPairSpacingMsMax,
    );
    const pair = { nextMs: nowMs + spacingMs, promisedMs: nowMs, spacingMs, refusedAtMs: nowMs };
    this.pairs.set(key, pair);
    if (this.pairs.size > limits.chatPairsMax) this.makeRoom();
    return this.promise(pair, nowMs);
  }

  /** The provider took a message: the least spacing now suffices, and after one more the recipient is forgotten. */
  succeeded(phoneNumberId: string, recipient: string): void {
    const key = `${phoneNumberId}/${recipient}`;
    const pair = this.pairs.get(key);
    if (pair === undefined) return;
    if (pair.spacingMs === limits.chatPairSpacingMs && pair.promisedMs <= this.clock.monotonicMs())
      this.pairs.delete(key);
    else pair.spacingMs = limits.chatPairSpacingMs;
  }

  /** Waiting messages come back one by one: of several at once, all but one would be refused again. */
  private promise(pair: Pair, nowMs: number): number {
    pair.promisedMs = Math.max(
      pair.nextMs,
      Math.min(pair.promisedMs + pair.spacingMs, nowMs + limits.chatPairSpacingMsMax),
    );
    return pair.promisedMs - nowMs;
  }

  private makeRoom(): void {
    const [oldest] = this.pairs.keys();
    if (oldest !== undefined) this.pairs.delete(oldest);
  }
}
