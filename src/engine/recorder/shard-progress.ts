import type { WriteAttempt, WriteOutcome } from "../../domain/jobs/event-store.ts";
import type { RecordPiece, RecordTurn } from "../../domain/jobs/queue.ts";
import type { LeaseTerm } from "../leases/shard-keeper.ts";

/** A recorder's state for one term of a shard. */
export class ShardProgress {
  /** Whether a batch with a piece of the shard is being written. */
  isBusy = false;
  /** Whether its outbox has more events than were handed out. */
  hasMore = false;
  /** The piece that is in the event store, but not yet removed from the queue. */
  done: RecordPiece | null = null;
  private refused: string | null = null;
  /** Whether the next piece may be in the event store already. */
  private mayBeThere = true;
  private lastEventId = -1;
  private readonly over = Promise.withResolvers<void>();

  constructor(readonly term: LeaseTerm) {}

  get shard(): number {
    return this.term.shard;
  }

  /** Resolves when the shard may be handed over. */
  get ended(): Promise<void> {
    return this.over.promise;
  }

  /** Whether it waits for its next piece, and may have it. */
  get isReady(): boolean {
    return !this.isBusy && !this.term.closing.aborted && this.term.isSurelyHeld();
  }

  /** Whether the term is closing, with no write in flight. */
  get isClosing(): boolean {
    return !this.isBusy && this.term.closing.aborted;
  }

  turn(takes: boolean): RecordTurn {
    return { lease: this.term.lease, done: this.done, refused: this.refused, takes };
  }

  /** Records that the queue has carried out the turn. */
  turned(): void {
    this.done = null;
    this.refused = null;
    this.hasMore = false;
  }

  attemptAt({ rows }: RecordPiece): WriteAttempt {
    const isBeyond = rows.every(({ eventId }) => eventId > this.lastEventId);
    return this.mayBeThere || !isBeyond ? "again" : "new";
  }

  recorded(piece: RecordPiece, outcome: WriteOutcome): void {
    this.mayBeThere = outcome.wereThere;
    for (const { eventId } of piece.rows) this.lastEventId = Math.max(this.lastEventId, eventId);
    this.done = piece;
  }

  /** Records that the event store refuses the batch that contains its piece. */
  wasRefused(batch: string): void {
    this.refused = batch;
  }

  end(): void {
    this.over.resolve();
  }

  fail(error: unknown): void {
    this.over.reject(error);
  }
}
