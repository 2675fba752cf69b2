import { limits } from "../../domain/limits.ts";

/**
 * How many messages per second a number sends. When throttled, the rate halves (messages already sent then no longer count) and
 * grows steadily again, up to nine tenths of the rate that was too high; after `chatLearnedMs` without throttling, up to the
 * usual rate. Congestion control as on the Internet (Chiu and Jain, 1989), with a memory.
 */
export class NumberRate {
  /** The rate right after the latest throttling, and when that was (monotonic ms). */
  private base: number = limits.chatMessagesPerSecond;
  private throttledAtMs = Number.NEGATIVE_INFINITY;
  /** The rate that held until throttling shows what is too much; a rate at which nothing passes shows nothing. */
  private learned: number = limits.chatMessagesPerSecond;
  private hasPassed = true;

  /** Messages per second. */
  at(nowMs: number): number {
    const sinceMs = nowMs - this.throttledAtMs;
    if (sinceMs === Number.POSITIVE_INFINITY) return limits.chatMessagesPerSecond;
    const learned = Math.min(this.learned, this.base + grown(Math.min(sinceMs, limits.chatLearnedMs)));
    return Math.min(limits.chatMessagesPerSecond, learned + grown(Math.max(0, sinceMs - limits.chatLearnedMs)));
  }

  /** A message passed. */
  succeeded(): void {
    this.hasPassed = true;
  }

  /** The message sent at `sentAtMs` was one too many. */
  throttled(nowMs: number, sentAtMs: number): void {
    if (sentAtMs < this.throttledAtMs) return;
    const rate = this.at(nowMs);
    if (this.hasPassed) this.learned = Math.max(limits.chatMessagesPerSecondMin, rate * 0.9);
    this.base = Math.max(limits.chatMessagesPerSecondMin, rate / 2);
    this.throttledAtMs = nowMs;
    this.hasPassed = false;
  }

  /** Whether the number is back at its usual rate, as if never throttled. */
  isUsual(nowMs: number): boolean {
    return this.at(nowMs) >= limits.chatMessagesPerSecond;
  }
}

function grown(forMs: number): number {
  return (forMs / 1000) * limits.chatRecoveryPerSecond;
}
