import { limits } from "../../domain/limits.ts";
import { Pace } from "../../domain/pace.ts";
import { chatLimits } from "./limits.ts";

interface Turn {
  /** Increases along the queue. */
  readonly number: number;
  /** The turn expires unless its tenant asks again by this time (monotonic ms). */
  keptUntilMs: number;
}

/**
 * Tenants waiting for their turn at one sender, in order of arrival, with one turn per tenant.
 *
 * Q1. Messages are spaced evenly at the rate, with a burst worth `limits.paceBurstMs` after a rest (`Pace`).
 * Q2. `waitMs` returns when the tenant's turn comes at the present rate, and the tenant keeps its position by calling
 *     again then. It therefore calls about twice per message, however many tenants wait.
 * Q3. A tenant that does not come back loses its position and leaves a gap of at most one message.
 */
export class TurnQueue {
  private readonly turns = new Map<string, Turn>();
  private issued = 0;
  private readonly pace = new Pace(limits.paceBurstMs);

  /** Returns the milliseconds until the tenant may send a message; 0: now. */
  waitMs(tenantId: string, nowMs: number, perSecond: number): number {
    this.dropAbsent(nowMs);
    const turn = this.turns.get(tenantId);
    const waitMs = this.pace.waitMs(nowMs, perSecond, this.countAhead(turn));
    const keptUntilMs = nowMs + Math.min(waitMs, chatLimits.chatAskAgainMs) + chatLimits.chatTurnLateMsMax;
    if (turn !== undefined) turn.keptUntilMs = keptUntilMs;
    else if (waitMs > 0) this.turns.set(tenantId, { number: this.issued++, keptUntilMs });
    return waitMs;
  }

  /** Records that the tenant sends a message. */
  take(tenantId: string, nowMs: number, perSecond: number): void {
    this.turns.delete(tenantId);
    this.pace.take(nowMs, perSecond);
  }

  /** Whether no tenant waits and past messages no longer affect the pace. */
  isQuiet(nowMs: number): boolean {
    this.dropAbsent(nowMs);
    return this.turns.size === 0 && this.pace.settledInMs(nowMs) === 0;
  }

  /** Counts the turns before this one, except abandoned ones in between. */
  private countAhead(turn: Turn | undefined): number {
    if (turn === undefined) return this.turns.size;
    const first = this.turns.values().next().value ?? turn;
    return Math.min(turn.number - first.number, this.turns.size - 1);
  }

  /** Drops expired turns at the head only: a turn behind an absent tenant is checked once it becomes the head. */
  private dropAbsent(nowMs: number): void {
    for (const [tenantId, { keptUntilMs }] of this.turns) {
      if (keptUntilMs >= nowMs) return;
      this.turns.delete(tenantId);
    }
  }
}
