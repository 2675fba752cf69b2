import type { Clock } from "../domain/clock.ts";
import { UnavailableError } from "../domain/errors.ts";
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
 * C1. A call that finds as many of its owner waiting as may, or waits for too long, is refused with 429 and never begun. If
 *     nothing of its owner was under way or waited beside it, what it waited for is at fault: then it fails as in an outage.
 * C2. One that was refused while it waited keeps its place until its turn comes: an owner whose calls do not come through cannot
 *     have more of them wait.
 */
export class CallTurns {
  private readonly turns: FairTurns;

  constructor(
    private readonly bounds: CallBounds,
    private readonly clock: Clock,
  ) {
    this.turns = new FairTurns(bounds);
  }

  /** What the call returns. Rejects with an `ApiError` 429, with `UnavailableError`, or as the call does. */
  inTurn<T>(owner: string, call: () => Promise<T>): Promise<T> {
    const { waitingMax, waitMs } = this.bounds;
    if (this.turns.waiting(owner) >= waitingMax) return Promise.reject(this.refusal());
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let isWanted = true;
    const late = this.clock.setTimer(waitMs, () => {
      isWanted = false;
      const isAlone = this.turns.working(owner) === 0 && this.turns.waiting(owner) === 1;
      reject(isAlone ? new UnavailableError("no call came through in time") : this.refusal());
    });
    this.turns.enter(owner, async () => {
      late.cancel();
      if (isWanted) await (async () => call())().then(resolve, reject);
    });
    return promise;
  }

  private refusal(): ApiError {
    return new ApiError(429, "too many such calls are under way: try again shortly", {}, this.bounds.retrySeconds);
  }
}
