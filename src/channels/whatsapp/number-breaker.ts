import { BackOff } from "../../domain/back-off.ts";
import type { Random } from "../../domain/random.ts";
import { chatLimits } from "./limits.ts";

/** Failures in a row that stop a number: one or two are the message's. */
const STRIKES_MAX = 3;
/** The interval of checks while another tenant's message probes the number. */
const PROBE_LOOK_MS = 1_000;

/**
 * A circuit breaker for one phone number (monotonic ms). After three failures in a row the number pauses, for up to a
 * second at first and twice as long each time; after each pause one message is sent as a probe.
 *
 * N1. Results of messages that were in flight when the pause began are ignored.
 * N2. A probe without a verdict is replaced by the next message after the longest time that it can take.
 */
export class NumberBreaker {
  private strikes = 0;
  private readonly pauses: BackOff;
  private pausedAtMs = Number.NEGATIVE_INFINITY;
  private pausedUntilMs = Number.NEGATIVE_INFINITY;
  private probedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(random: Random) {
    this.pauses = new BackOff(chatLimits.chatFailingPause, random);
  }

  get isOpen(): boolean {
    return this.strikes >= STRIKES_MAX;
  }

  /** Returns the milliseconds until a message may be sent; 0: now. */
  waitMs(nowMs: number): number {
    if (!this.isOpen) return 0;
    if (nowMs < this.pausedUntilMs) return this.pausedUntilMs - nowMs;
    return nowMs < this.probedUntilMs ? PROBE_LOOK_MS : 0;
  }

  /** Records that a message is being sent. */
  take(nowMs: number): void {
    if (this.isOpen) this.probedUntilMs = nowMs + chatLimits.chatProbeMsMax;
  }

  /** Records that the provider judged a message. Returns whether the number was stopped. */
  works(): boolean {
    const wasOpen = this.isOpen;
    this.strikes = 0;
    this.pauses.reset();
    this.probedUntilMs = Number.NEGATIVE_INFINITY;
    return wasOpen;
  }

  /** Records a failure of the provider for a message sent at `sentAtMs`. Returns whether this stops the number. */
  failed(nowMs: number, sentAtMs: number): boolean {
    const wasOpen = this.isOpen;
    if (wasOpen && sentAtMs <= this.pausedAtMs) return false;
    this.strikes += 1;
    if (!this.isOpen) return false;
    this.pausedAtMs = nowMs;
    this.pausedUntilMs = nowMs + this.pauses.nextMs();
    this.probedUntilMs = Number.NEGATIVE_INFINITY;
    return !wasOpen;
  }
}
