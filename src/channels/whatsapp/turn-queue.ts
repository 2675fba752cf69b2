import { limits } from "../../domain/limits.ts";

interface Turn {
  /** Grows along the queue. */
  readonly number: number;
  /** When its tenant has to ask again to keep it (monotonic ms). */
  keptUntilMs: number;
}

/**
 * Tenants that wait for their turn at one sender, each with one turn at a time, in the order in which they came.
 *
 * Q1. Messages are spaced evenly by the rate, with a burst of `limits.paceBurstMs` worth after a rest (GCRA, ITU-T I.371).
 * Q2. Who asks is told when its turn comes by the present rate, and keeps its place by asking again then. So a tenant
 *     asks about twice a message, however many wait.
 * Q3. Who does not come leaves a gap of one message at most, and no place.
 */
export class TurnQueue {
  private readonly turns = new Map<string, Turn>();
  private issued = 0;
  /** When the next message is due by the even spacing (monotonic ms). */
  private nextMs = Number.NEGATIVE_INFINITY;

  /** Milliseconds until the tenant may send a message; 0: now. */
  waitMs(tenantId: string, nowMs: number, perSecond: number): number {
    this.dropAbsent(nowMs);
    const turn = this.turns.get(tenantId);
    const intervalMs = 1000 / perSecond;
    const dueMs = this.nextMs + this.aheadOf(turn) * intervalMs - burstMs(intervalMs);
    const waitMs = Math.max(0, dueMs - nowMs);
    const keptUntilMs = nowMs + Math.min(waitMs, limits.chatAskAgainMs) + limits.chatTurnLateMsMax;
    if (turn !== undefined) turn.keptUntilMs = keptUntilMs;
    else if (waitMs > 0) this.turns.set(tenantId, { number: this.issued++, keptUntilMs });
    return waitMs;
  }

  /** The tenant sends a message. */
  take(tenantId: string, nowMs: number, perSecond: number): void {
    this.turns.delete(tenantId);
    this.nextMs = Math.max(nowMs, this.nextMs) + 1000 / perSecond;
  }

  /** Whether nobody waits, and past messages matter no more. */
  isQuiet(nowMs: number): boolean {
    this.dropAbsent(nowMs);
    return this.turns.size === 0 && this.nextMs <= nowMs;
  }

  /** How many have their turn before this one. Places that were left in between are not counted. */
  private aheadOf(turn: Turn | undefined): number {
    if (turn === undefined) return this.turns.size;
    const first = this.turns.values().next().value ?? turn;
    return Math.min(turn.number - first.number, this.turns.size - 1);
  }

  /** Looks at the head only: whoever stands behind an absent one is looked at when it is the head. */
  private dropAbsent(nowMs: number): void {
    for (const [tenantId, { keptUntilMs }] of this.turns) {
      if (keptUntilMs >= nowMs) return;
      this.turns.delete(tenantId);
    }
  }
}

/** What remains of the burst once the first message has taken its own place. */
function burstMs(intervalMs: number): number {
  return Math.max(0, limits.paceBurstMs - intervalMs);
}
