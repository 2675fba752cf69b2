import type { Clock } from "../../domain/clock.ts";
import type { WhatsappSender } from "../../domain/whatsapp.ts";
import { chatLimits } from "./limits.ts";
import { NumberRate } from "./number-rate.ts";
import { TurnQueue } from "./turn-queue.ts";

/**
 * The pace of every phone number that this process sends from.
 *
 * P1. A number sends no faster than its rate (80 per second, less after throttling), except for a burst worth
 *     `paceBurstMs` after a rest.
 * P2. Tenants that share a number take turns, one message each, and learn when their turn comes: no tenant wakes up in
 *     vain because of another's messages.
 * P3. A paused number sends nothing; a pause for refused credentials ends when the credentials change.
 * P4. A number is remembered only as long as its state differs from the default.
 *
 * Processes do not know each other's pace. One process at a time delivers for a tenant with its own number; if several
 * share the platform's number, the provider's throttling divides it between them. A new process starts at full rate and
 * without pauses: the provider throttles it again if needed.
 */
export class NumberPace {
  private readonly numbers = new Map<string, NumberState>();

  constructor(private readonly clock: Clock) {}

  /** Milliseconds until the tenant may send from the number; 0: now. Reserves the tenant's turn. */
  waitMs({ phoneNumberId, accessToken }: WhatsappSender, tenantId: string): number {
    const state = this.stateOf(phoneNumberId);
    const nowMs = this.clock.monotonicMs();
    const waitMs = pausedMs(state, accessToken, nowMs) || state.turns.waitMs(tenantId, nowMs, state.rate.at(nowMs));
    return Math.min(waitMs, chatLimits.chatAskAgainMs);
  }

  /** The tenant sends a message. Returns the time of sending, by which `slow` identifies it. */
  take({ phoneNumberId }: WhatsappSender, tenantId: string): number {
    const state = this.stateOf(phoneNumberId);
    const nowMs = this.clock.monotonicMs();
    state.turns.take(tenantId, nowMs, state.rate.at(nowMs));
    return nowMs;
  }

  /** The provider accepted a message. */
  succeeded({ phoneNumberId }: WhatsappSender): void {
    const state = this.stateOf(phoneNumberId);
    state.rate.succeeded();
    state.refusedToken = null;
  }

  /** The provider throttled a message sent at `sentAtMs`: the number sends too fast. */
  slow({ phoneNumberId }: WhatsappSender, sentAtMs: number): void {
    this.stateOf(phoneNumberId).rate.throttled(this.clock.monotonicMs(), sentAtMs);
  }

  /** Pauses the number for this long. */
  pause({ phoneNumberId }: WhatsappSender, forMs: number): void {
    const state = this.stateOf(phoneNumberId);
    const untilMs = this.clock.monotonicMs() + Math.min(forMs, chatLimits.chatPauseMsMax);
    state.pausedUntilMs = Math.max(state.pausedUntilMs, untilMs);
  }

  /** Pauses the number for this long while it uses this token. Returns whether the token was good before. */
  refuse({ phoneNumberId, accessToken }: WhatsappSender, forMs: number): boolean {
    const state = this.stateOf(phoneNumberId);
    const isNews = state.refusedToken !== accessToken;
    state.refusedToken = accessToken;
    state.refusedUntilMs = this.clock.monotonicMs() + Math.min(forMs, chatLimits.chatPauseMsMax);
    return isNews;
  }

  private stateOf(phoneNumberId: string): NumberState {
    const known = this.numbers.get(phoneNumberId);
    if (known !== undefined) return known;
    if (this.numbers.size >= chatLimits.chatNumbersMax) this.forgetUneventful();
    const state = newState();
    this.numbers.set(phoneNumberId, state);
    return state;
  }

  private forgetUneventful(): void {
    const nowMs = this.clock.monotonicMs();
    for (const [phoneNumberId, state] of this.numbers) {
      const isPaused = state.pausedUntilMs > nowMs || state.refusedUntilMs > nowMs;
      if (!isPaused && state.turns.isQuiet(nowMs) && state.rate.isUsual(nowMs)) this.numbers.delete(phoneNumberId);
    }
  }
}

interface NumberState {
  readonly rate: NumberRate;
  readonly turns: TurnQueue;
  pausedUntilMs: number;
  refusedToken: string | null;
  refusedUntilMs: number;
}

function newState(): NumberState {
  return {
    rate: new NumberRate(),
    turns: new TurnQueue(),
    pausedUntilMs: Number.NEGATIVE_INFINITY,
    refusedToken: null,
    refusedUntilMs: Number.NEGATIVE_INFINITY,
  };
}

function pausedMs({ pausedUntilMs, refusedToken, refusedUntilMs }: NumberState, token: string, nowMs: number): number {
  const untilMs = refusedToken === token ? Math.max(pausedUntilMs, refusedUntilMs) : pausedUntilMs;
  return Math.max(0, untilMs - nowMs);
}
