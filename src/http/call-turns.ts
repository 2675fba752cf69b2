import type { Clock } from "../domain/clock.ts";
import { FairTurns, type TurnBounds } from "../domain/fair-turns.ts";
import { ApiError } from "./api-error.ts";

export interface CallBounds extends TurnBounds {
  /** Calls of one owner that wait for their turn. */
  readonly waitingMax: number;
  /** How long a call waits at most. */
  readonly waitMs: number;
  readonly retrySeconds: number;
}

/**
 * Lets calls through in turn by owner (a tenant, a pass), so that each waits for its own owner's and for few of all others.
 *
 * C1. A call that finds as many of its owner waiting as may, or waits for too long, is refused with 429 and never begun.
 * C2. One that was refused while it waited keeps its place until its turn comes: an owner whose calls do not come through cannot
 *     have more of them wait.
 */
export class CallTurns {
  private readonly turns: FairTurns;
  private readonly waiting = new Map<string, number>();

  constructor(
    private readonly bounds: CallBounds,
    private readonly clock: Clock,
  ) {
    this.turns = new FairTurns(bounds);
  }

  /** What the call returns. Rejects with an `ApiError` 429, or as the call does. */
  inTurn<T>(owner: string, call: () => Promise<T>): Promise<T> {
    const { waitingMax, waitMs } = this.bounds;
    if ((this.waiting.get(owner) ?? 0) >= waitingMax) return Promise.reject(this.refusal());
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let isWanted = true;
    const late = this.clock.setTimer(waitMs, () => {
      isWanted = false;
      reject(this.refusal());
    });
    this.count(owner, 1);
    this.turns.enter(owner, async () => {
      late.cancel();
      this.count(owner, -1);
      if (isWanted) await (async () => call())().then(resolve, reject);
    });
    return promise;
  }

  private count(owner: string, more: 1 | -1): void {
    const count = (this.waiting.get(owner) ?? 0) + more;
    if (count === 0) this.waiting.delete(owner);
    else this.waiting.set(owner, count);
  }

  private refusal(): ApiError {
    return new ApiError(429, "too many such calls are under way: try again shortly", {}, this.bounds.retrySeconds);
  }
}
