import type { Clock } from "../../domain/clock.ts";
import { UnavailableError } from "../../domain/errors.ts";
import { engineLimits } from "../limits.ts";

/**
 * Lets messages of batches into the queue piece by piece: a few pieces at a time are in a call to a store or wait for
 * the next. So single requests never wait behind more than that, however many batches arrive at a time.
 *
 * No piece waits here for longer than `commitWaitMs`: one that is refused has had no effect.
 */
export class PieceTurns {
  private readonly places = new Map<number, Place>();

  constructor(
    private readonly shardsPerCall: "all" | "one",
    private readonly clock: Clock,
  ) {}

  async inTurn<T>(shard: number, work: () => Promise<T>): Promise<T> {
    const place = this.getPlace(this.shardsPerCall === "all" ? 0 : shard);
    if (place.entered >= PIECES_AT_A_TIME) await this.wait(place);
    else place.entered += 1;
    try {
      return await work();
    } finally {
      this.leave(place);
    }
  }

  private wait(place: Place): Promise<void> {
    return new Promise((resolve, reject) => {
      place.waiting.push({ sinceMs: this.clock.monotonicMs(), resolve, reject });
    });
  }

  /** Passes the turn on. */
  private leave(place: Place): void {
    const oldestMs = this.clock.monotonicMs() - engineLimits.commitWaitMs;
    for (let next = place.waiting.shift(); next !== undefined; next = place.waiting.shift()) {
      if (next.sinceMs >= oldestMs) return next.resolve();
      next.reject(new UnavailableError("the queue has not answered for too long"));
    }
    place.entered -= 1;
  }

  private getPlace(number: number): Place {
    const known = this.places.get(number);
    if (known !== undefined) return known;
    const place = { entered: 0, waiting: [] };
    this.places.set(number, place);
    return place;
  }
}

const PIECES_AT_A_TIME = 4;

interface Place {
  entered: number;
  readonly waiting: Waiting[];
}

interface Waiting {
  readonly sinceMs: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}
