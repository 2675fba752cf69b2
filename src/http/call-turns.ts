import type { Clock } from "../domain/clock.ts";
import { UnavailableError } from "../domain/errors.ts";
import { FairTurns, type TurnBounds } from "../domain/fair-turns.ts";
import { ApiError } from "./api-error.ts";

export interface CallBounds extends TurnBounds {
  /** Calls of one owner that wait for their turn. */
  readonly waitingMax: number;
  /** The longest that a call waits. */
  readonly waitMs: number;
  readonly retrySeconds: number;
}

/**
 * Lets calls through in turn by owner (a tenant, a pass), so that a call waits behind its own owner's calls and only a few of
 * the others'.
 *
 * C1. A call is refused with 429, and never begun, if its owner already has the maximum number of calls waiting, or if it
 *     waits too long. If its owner had no other call running or waiting, the cause lies elsewhere: the call then fails as in an
 *     outage.
 * C2. A call refused while waiting keeps its position in the queue until its turn comes, so timeouts do not let an owner
 *     queue more calls.
 */
export class CallTurns {
  private readonly turns: FairTurns;

  constructor(
    private readonly bounds: CallBounds,
    private readonly clock: Clock,
  ) {
    this.turns = new FairTurns(bounds);
  }

  /**
   * Runs the call in its turn and returns its result. Rejects with an `ApiError` 429, with `UnavailableError`, or as the call
   * does.
   */
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
