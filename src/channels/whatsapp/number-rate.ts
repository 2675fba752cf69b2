import { limits } from "../../domain/limits.ts";

/**
 * How many messages a second a number sends. Throttled, it halves (what was already on its way then counts for nothing)
 * and grows again steadily, up to nine tenths of the rate that was too much; when nothing was for `chatLearnedMs`, up to
 * the usual one. Congestion control as on the Internet (Chiu and Jain, 1989), with a memory.
 */
export class NumberRate {
  /** The rate right after the latest throttling, and when that was (monotonic ms). */
  private base: number = limits.chatMessagesPerSecond;
  private throttledAtMs = Number.NEGATIVE_INFINITY;
  /** The rate that held until it was throttled tells what is too much; one at which nothing passes tells nothing. */
  private learned: number = limits.chatMessagesPerSecond;
  private hasPassed = true;

  /** Messages a second. */
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

  /** A message that was sent at `sentAtMs` was one too many. */
  throttled(nowMs: number, sentAtMs: number): void {
    if (sentAtMs < this.throttledAtMs) return;
    const rate = this.at(nowMs);
    if (this.hasPassed) this.learned = Math.max(limits.chatMessagesPerSecondMin, rate * 0.9);
    this.base = Math.max(limits.chatMessagesPerSecondMin, rate / 2);
    this.throttledAtMs = nowMs;
    this.hasPassed = false;
  }

  /** Whether the number has its usual rate, as if nothing had been. */
  isUsual(nowMs: number): boolean {
    return this.at(nowMs) >= limits.chatMessagesPerSecond;
  }
}

function grown(forMs: number): number {
  return (forMs / 1000) * limits.chatRecoveryPerSecond;
}
