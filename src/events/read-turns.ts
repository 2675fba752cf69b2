import type { Clock } from "../domain/clock.ts";
import { FairTurns, type TurnBounds } from "../domain/fair-turns.ts";
import { ApiError } from "../http/api-error.ts";

export interface ReadBounds extends TurnBounds {
  /** Reads of one tenant that wait for their turn. */
  readonly waitingMax: number;
  /** How long a read waits at most. */
  readonly waitMs: number;
  readonly retrySeconds: number;
}

/**
 * Lets tenants read in turn, so that a read waits for its own tenant's reads and for few of all others.
 *
 * R1. A read that finds as many of its tenant waiting as may, or waits for too long, is refused with 429 and never begun.
 * R2. One that was refused while it waited keeps its place until its turn comes: a tenant whose reads do not come through cannot
 *     have more of them wait.
 */
export class ReadTurns {
  private readonly turns: FairTurns;
  private readonly waiting = new Map<string, number>();

  constructor(
    private readonly bounds: ReadBounds,
    private readonly clock: Clock,
  ) {
    this.turns = new FairTurns(bounds);
  }

  /** What is read. Rejects with an `ApiError` 429, or as the read does. */
  inTurn<T>(tenantId: string, read: () => Promise<T>): Promise<T> {
    const { waitingMax, waitMs } = this.bounds;
    if ((this.waiting.get(tenantId) ?? 0) >= waitingMax) return Promise.reject(this.refusal());
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let isWanted = true;
    const late = this.clock.setTimer(waitMs, () => {
      isWanted = false;
      reject(this.refusal());
    });
    this.count(tenantId, 1);
    this.turns.enter(tenantId, async () => {
      late.cancel();
      this.count(tenantId, -1);
      if (isWanted) await (async () => read())().then(resolve, reject);
    });
    return promise;
  }

  private count(tenantId: string, more: 1 | -1): void {
    const count = (this.waiting.get(tenantId) ?? 0) + more;
    if (count === 0) this.waiting.delete(tenantId);
    else this.waiting.set(tenantId, count);
  }

  private refusal(): ApiError {
    return new ApiError(429, "too many of your reads are under way: try again shortly", {}, this.bounds.retrySeconds);
  }
}
