import type { Clock } from "../../domain/clock.ts";
import { remember } from "../../domain/remember.ts";
import { chatLimits } from "./limits.ts";

interface Pair {
  /** When the recipient's next message may be sent (monotonic ms). */
  nextMs: number;
  /** The latest time for which a waiting message is scheduled (monotonic ms). */
  promisedMs: number;
  spacingMs: number;
  readonly refusedAtMs: number;
}

/**
 * Spaces messages to recipients that a number wrote to too often, each with its own wait: six seconds at first, doubled
 * with every further refusal. Other recipients are not delayed. Bounded: the oldest entry is forgotten first, which
 * costs one refusal.
 */
export class RecipientSpacing {
  /** By number and recipient, ordered by latest refusal. */
  private readonly pairs = new Map<string, Pair>();

  constructor(private readonly clock: Clock) {}

  /** Returns the milliseconds until a message to the recipient may be sent; 0: now. */
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
   * Records that the provider refused a message sent at `sentAtMs` (monotonic). Returns the milliseconds until it may
   * be retried. Messages in flight together count as one refusal.
   */
  refused(phoneNumberId: string, recipient: string, sentAtMs: number): number {
    const key = `${phoneNumberId}/${recipient}`;
    const nowMs = this.clock.monotonicMs();
    const known = this.pairs.get(key);
    if (known !== undefined && sentAtMs < known.refusedAtMs) return this.promise(known, nowMs);
    const spacingMs = Math.min(
      Math.max(chatLimits.chatPairSpacingMs, 2 * (known?.spacingMs ?? 0)),
      chatLimits.chatPairSpacingMsMax,
    );
    const pair = { nextMs: nowMs + spacingMs, promisedMs: nowMs, spacingMs, refusedAtMs: nowMs };
    remember(this.pairs, { key, value: pair, max: chatLimits.chatPairsMax });
    return this.promise(pair, nowMs);
  }

  /**
   * Records that the provider accepted a message: the minimum spacing now suffices, and one more acceptance ends the
   * spacing.
   */
  succeeded(phoneNumberId: string, recipient: string): void {
    const key = `${phoneNumberId}/${recipient}`;
    const pair = this.pairs.get(key);
    if (pair === undefined) return;
    if (pair.spacingMs === chatLimits.chatPairSpacingMs && pair.promisedMs <= this.clock.monotonicMs())
      this.pairs.delete(key);
    else pair.spacingMs = chatLimits.chatPairSpacingMs;
  }

  /** Schedules waiting messages one at a time: the provider would refuse all but one of several at once. */
  private promise(pair: Pair, nowMs: number): number {
    pair.promisedMs = Math.max(
      pair.nextMs,
      Math.min(pair.promisedMs + pair.spacingMs, nowMs + chatLimits.chatPairSpacingMsMax),
    );
    return pair.promisedMs - nowMs;
  }
}
