import { chatLimits } from "./limits.ts";

/**
 * How many messages per second a number sends. When throttled, the rate halves (messages already sent then no longer count) and
 * grows steadily again, up to nine tenths of the rate that was too high; after `chatLearnedMs` without throttling, up to the
 * usual rate. Congestion control as on the Internet (Chiu and Jain, 1989), with a memory.
 */
export class NumberRate {
  /** The rate right after the latest throttling, and when that was (monotonic ms). */
  private base: number = chatLimits.chatMessagesPerSecond;
  private throttledAtMs = Number.NEGATIVE_INFINITY;
  /** The rate in effect at the last throttling, as an upper bound; a rate at which no message passed is no bound. */
  private learned: number = chatLimits.chatMessagesPerSecond;
  private hasPassed = true;

  /** Messages per second. */
  at(nowMs: number): number {
    const sinceMs = nowMs - this.throttledAtMs;
    if (sinceMs === Number.POSITIVE_INFINITY) return chatLimits.chatMessagesPerSecond;
    const learned = Math.min(this.learned, this.base + grown(Math.min(sinceMs, chatLimits.chatLearnedMs)));
    return Math.min(chatLimits.chatMessagesPerSecond, learned + grown(Math.max(0, sinceMs - chatLimits.chatLearnedMs)));
  }

  /** Records that a message passed. */
  succeeded(): void {
    this.hasPassed = true;
  }

  /** Halves the rate after the provider throttled the message sent at `sentAtMs`. */
  throttled(nowMs: number, sentAtMs: number): void {
    if (sentAtMs < this.throttledAtMs) return;
    const rate = this.at(nowMs);
    if (this.hasPassed) this.learned = Math.max(chatLimits.chatMessagesPerSecondMin, rate * 0.9);
    this.base = Math.max(chatLimits.chatMessagesPerSecondMin, rate / 2);
    this.throttledAtMs = nowMs;
    this.hasPassed = false;
  }

  /** Whether the number is back at its usual rate, as if it had never been throttled. */
  isUsual(nowMs: number): boolean {
    return this.at(nowMs) >= chatLimits.chatMessagesPerSecond;
  }
}

function grown(forMs: number): number {
  return (forMs / 1000) * chatLimits.chatRecoveryPerSecond;
}
