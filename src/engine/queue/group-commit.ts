import type { Clock } from "../../domain/clock.ts";
import { UnavailableError } from "../../domain/errors.ts";
import { engineLimits } from "../limits.ts";

export interface GroupCommitOptions<Item, Answer> {
  readonly clock: Clock;
  readonly itemsMax: number;
  readonly bytesMax: number;
  measureBytes(item: Item): number;
  /** The share of `itemsMax` that the item uses; by default 1. */
  measureSize?(item: Item): number;
  /** Most calls in flight, by default one. With more, the store works on one call while the caller works on another. */
  readonly inFlightMax?: number;
  /** Answers in the order of the items. */
  send(items: readonly Item[]): Promise<readonly Answer[]>;
}

/**
 * Group commits by destination: a single Redis takes all shards in one call, a cluster takes one call per slot, so that
 * an unavailable node holds up only its own shards.
 */
export class GroupCommit<Item, Answer> {
  private readonly commits = new Map<number, CommitQueue<Item, Answer>>();

  constructor(
    private readonly shardsPerCall: "all" | "one",
    private readonly options: GroupCommitOptions<Item, Answer>,
  ) {}

  submit(shard: number, item: Item): Promise<Answer> {
    const place = this.shardsPerCall === "all" ? 0 : shard;
    let commit = this.commits.get(place);
    if (commit === undefined) {
      commit = new CommitQueue(this.options);
      this.commits.set(place, commit);
    }
    return commit.submit(item);
  }
}

/**
 * Collects requests while a call to the store is in flight, and sends them as one call when it returns: a lone request
 * goes out at once, a hundred concurrent ones share one script call and one fsync.
 *
 * G1. One call is in flight at a time, or up to `inFlightMax`.
 * G2. Items go out in the order in which they came.
 * G3. Each item is answered once.
 * G4. No more than `commitQueueMax` items wait, and none for longer than `commitWaitMs` before it is sent: an item that
 *     is refused for either reason has had no effect.
 */
class CommitQueue<Item, Answer> {
  private queue: Waiting<Item, Answer>[] = [];
  private running = 0;

  constructor(private readonly options: GroupCommitOptions<Item, Answer>) {}

  submit(item: Item): Promise<Answer> {
    if (this.queue.length >= engineLimits.commitQueueMax) {
      return Promise.reject(new UnavailableError("too many requests wait for the queue"));
    }
    return new Promise((resolve, reject) => {
      this.queue.push({ item, sinceMs: this.options.clock.monotonicMs(), resolve, reject });
      if (this.running < (this.options.inFlightMax ?? 1)) void this.run();
    });
  }

  private async run(): Promise<void> {
    this.running += 1;
    while (this.queue.length > 0) {
      const batch = this.take();
      if (batch.length === 0) continue;
      try {
        const answers = await this.options.send(batch.map((waiting) => waiting.item));
        batch.forEach((waiting, i) => {
          const answer = answers[i];
          if (answer === undefined) waiting.reject(new Error("the store answered fewer items than were sent"));
          else waiting.resolve(answer);
        });
      } catch (error) {
        for (const waiting of batch) waiting.reject(error);
      }
    }
    this.running -= 1;
  }

  private take(): Waiting<Item, Answer>[] {
    this.refuseOverdue();
    const { itemsMax, bytesMax, measureBytes, measureSize } = this.options;
    let count = 0;
    let size = 0;
    let bytes = 0;
    for (const { item } of this.queue) {
      bytes += measureBytes(item);
      size += measureSize?.(item) ?? 1;
      if (count > 0 && (size > itemsMax || bytes > bytesMax)) break;
      count += 1;
    }
    return this.queue.splice(0, count);
  }

  private refuseOverdue(): void {
    const oldestMs = this.options.clock.monotonicMs() - engineLimits.commitWaitMs;
    const overdue = this.queue.findIndex((waiting) => waiting.sinceMs >= oldestMs);
    if (overdue === 0) return;
    const refused = this.queue.splice(0, overdue === -1 ? this.queue.length : overdue);
    for (const waiting of refused) waiting.reject(new UnavailableError("the queue has not answered for too long"));
  }
}

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly sinceMs: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}
