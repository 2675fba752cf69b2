import type { WhatsappSender } from "../../domain/channels/whatsapp.ts";
import type { Clock } from "../../domain/clock.ts";
import type { Random } from "../../domain/random.ts";
import { chatLimits } from "./limits.ts";
import { NumberBreaker } from "./number-breaker.ts";
import { NumberRate } from "./number-rate.ts";
import { TurnQueue } from "./turn-queue.ts";

/**
 * The pace of every phone number that this process sends from.
 *
 * P1. A number sends no faster than its rate (80 per second, less after throttling), except for a burst worth
 *     `paceBurstMs` after a rest.
 * P2. Tenants that share a number take turns, one message each, and are told when to ask again: no tenant wakes up in
 *     vain because of another's messages.
 * P3. A paused number sends no messages; a pause for refused credentials ends when the credentials change.
 * P4. A number for which the provider fails stops alone (`NumberBreaker`). The whole API counts as failed once several
 *     numbers fail with no judged message in between.
 * P5. A number is remembered only as long as its state differs from the default.
 *
 * Processes do not know each other's pace. One process at a time delivers for a tenant with its own number; if several
 * share the platform's number, the provider's throttling divides it between them. A new process starts at full rate and
 * without pauses: the provider throttles it again if needed.
 */
export class NumberPace {
  private readonly numbers = new Map<string, NumberState>();
  /** Numbers for which the provider has failed since it last judged a message. */
  private readonly failing = new Set<string>();

  constructor(
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  /** Returns the milliseconds until the tenant may send from the number (0: now) and reserves its turn. */
  waitMs({ phoneNumberId, accessToken }: WhatsappSender, tenantId: string): number {
    const state = this.getState(phoneNumberId);
    const nowMs = this.clock.monotonicMs();
    const refusedMs = refusedFor(state, accessToken, nowMs);
    const stoppedMs = Math.max(state.pausedUntilMs - nowMs, state.breaker.waitMs(nowMs), refusedMs);
    const waitMs = stoppedMs > 0 ? stoppedMs : state.turns.waitMs(tenantId, nowMs, state.rate.at(nowMs));
    // A new token is noticed when its tenant asks.
    return Math.min(waitMs, refusedMs > 0 ? chatLimits.chatNewTokenMs : chatLimits.chatAskAgainMs);
  }

  /** Records that the tenant sends a message. Returns the time of sending, by which `slow` identifies it. */
  take({ phoneNumberId }: WhatsappSender, tenantId: string): number {
    const state = this.getState(phoneNumberId);
    const nowMs = this.clock.monotonicMs();
    state.turns.take(tenantId, nowMs, state.rate.at(nowMs));
    state.breaker.take(nowMs);
    return nowMs;
  }

  /** Records that the provider judged a message, with any result. Returns whether failures had stopped the number. */
  judged({ phoneNumberId }: WhatsappSender): boolean {
    this.failing.clear();
    return this.getState(phoneNumberId).breaker.works();
  }

  /** Records that the provider failed for a message sent at `sentAtMs`, through no fault of the message. */
  failed({ phoneNumberId }: WhatsappSender, sentAtMs: number): Failure {
    if (this.failing.size < chatLimits.chatFailingNumbersMax) this.failing.add(phoneNumberId);
    const isStopped = this.getState(phoneNumberId).breaker.failed(this.clock.monotonicMs(), sentAtMs);
    return { isStopped, isApi: this.failing.size >= chatLimits.chatFailingNumbersMax };
  }

  /** Returns the milliseconds that a number still pauses for failures; 0: it may send. */
  failingMs({ phoneNumberId }: WhatsappSender): number {
    return this.getState(phoneNumberId).breaker.waitMs(this.clock.monotonicMs());
  }

  /** Records that the provider accepted a message. */
  succeeded({ phoneNumberId }: WhatsappSender): void {
    const state = this.getState(phoneNumberId);
    state.rate.succeeded();
    state.refusedToken = null;
  }

  /** Slows the number down after the provider throttled a message sent at `sentAtMs`. */
  slow({ phoneNumberId }: WhatsappSender, sentAtMs: number): void {
    this.getState(phoneNumberId).rate.throttled(this.clock.monotonicMs(), sentAtMs);
  }

  /** Pauses the number for this long. */
  pause({ phoneNumberId }: WhatsappSender, forMs: number): void {
    const state = this.getState(phoneNumberId);
    const untilMs = this.clock.monotonicMs() + Math.min(forMs, chatLimits.chatPauseMsMax);
    state.pausedUntilMs = Math.max(state.pausedUntilMs, untilMs);
  }

  /** Pauses the number for this long while it uses this token. Returns whether the token was good before. */
  refuse({ phoneNumberId, accessToken }: WhatsappSender, forMs: number): boolean {
    const state = this.getState(phoneNumberId);
    const isNews = state.refusedToken !== accessToken;
    state.refusedToken = accessToken;
    state.refusedUntilMs = this.clock.monotonicMs() + Math.min(forMs, chatLimits.chatPauseMsMax);
    return isNews;
  }

  private getState(phoneNumberId: string): NumberState {
    const known = this.numbers.get(phoneNumberId);
    if (known !== undefined) return known;
    if (this.numbers.size >= chatLimits.chatNumbersMax) this.forgetUneventful();
    const state = newState(this.random);
    this.numbers.set(phoneNumberId, state);
    return state;
  }

  private forgetUneventful(): void {
    const nowMs = this.clock.monotonicMs();
    for (const [phoneNumberId, state] of this.numbers) {
      const isPaused = state.pausedUntilMs > nowMs || state.refusedUntilMs > nowMs || state.breaker.isOpen;
      if (!isPaused && state.turns.isQuiet(nowMs) && state.rate.isUsual(nowMs)) this.numbers.delete(phoneNumberId);
    }
  }
}

/** The effects of a failure of the provider. */
export interface Failure {
  /** Whether this failure stops the number. */
  readonly isStopped: boolean;
  /** Whether the provider fails for every number. */
  readonly isApi: boolean;
}

interface NumberState {
  readonly breaker: NumberBreaker;
  readonly rate: NumberRate;
  readonly turns: TurnQueue;
  pausedUntilMs: number;
  refusedToken: string | null;
  refusedUntilMs: number;
}

function newState(random: Random): NumberState {
  return {
    breaker: new NumberBreaker(random),
    rate: new NumberRate(),
    turns: new TurnQueue(),
    pausedUntilMs: Number.NEGATIVE_INFINITY,
    refusedToken: null,
    refusedUntilMs: Number.NEGATIVE_INFINITY,
  };
}

/** Returns the milliseconds for which the token counts as refused. */
function refusedFor({ refusedToken, refusedUntilMs }: NumberState, token: string, nowMs: number): number {
  return refusedToken === token ? Math.max(0, refusedUntilMs - nowMs) : 0;
}
