import { backOffMs } from "../../domain/back-off.ts";
import { sleep } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import type { EventWriter, StoredEventRow } from "../../domain/jobs/event-store.ts";
import type { RecordAnswer, RecordBatch, RecorderQueue } from "../../domain/jobs/queue.ts";
import { limits } from "../../domain/limits.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import type { LeaseTerm } from "../leases/shard-keeper.ts";
import { engineLimits } from "../limits.ts";
import { BatchWriter, type Share } from "./batch-writer.ts";
import { ShardProgress } from "./shard-progress.ts";

export interface OutboxCopierOptions extends RuntimePorts {
  readonly queue: RecorderQueue;
  readonly eventStore: EventWriter;
  /** Called with rows that are now in the event store, in the order of their outbox. Must not throw. */
  readonly onRecorded?: (rows: readonly StoredEventRow[]) => void;
}

/**
 * Copies the outboxes of some shards into the event store, with one insert for all their events: an insert has a high
 * fixed cost and a low cost per row.
 *
 * Invariants:
 * R1. A piece is taken from its outbox only after the event store has confirmed its batch: written first, marked as
 *     done after.
 * R2. A shard's pieces are written one after the other, in the order of the outbox; a batch that fails is repeated,
 *     unchanged and under its token, before later pieces are written. Events therefore become visible in order.
 * R3. No write begins unless the lease of one of its pieces is surely held. A write that has begun may end late: its
 *     token is that of a frozen batch, and the next owner of one of its pieces writes the same batch, or learns that
 *     the event store has it.
 * R4. All knowledge of a shard's progress lives in one `ShardProgress` per term.
 * R5. A batch is new to the event store only if that is certain for each piece. Another process may have written a
 *     batch that an earlier call froze, at any time. The same is possible for the first piece of a term, for the next
 *     one if a part of the first was there, and for one whose events are not beyond the last that this term has
 *     written, as after the loss of a Redis that had confirmed more than its replica got. Such a batch, and one whose
 *     write failed, is written as one that may be there.
 * R6. A batch that is refused repeatedly is split, first into its pieces, and a piece into rows: the faulty row is set
 *     aside, or delays only its own shard. An outage is not a refusal.
 * R7. A batch that fails delays only its own shards.
 */
export class OutboxCopier {
  /** The shard that was served longest ago comes first: one call hands out a bounded amount. */
  private readonly shards = new Map<number, ShardProgress>();
  private readonly writer: BatchWriter;
  private isRunning = false;
  private dueMs = 0;
  /** Set after a failed call. */
  private notBeforeMs = 0;
  private failures = 0;
  private nudge = new AbortController();

  constructor(private readonly options: OutboxCopierOptions) {
    this.writer = new BatchWriter({ ...options, onLetGo: (progress) => this.free(progress) });
  }

  /** Resolves when the shard may be handed over: its term is closing, and its writes in flight have ended. */
  async copy(term: LeaseTerm): Promise<void> {
    const progress = new ShardProgress(term);
    this.shards.set(term.shard, progress);
    const onClosing = () => this.nudge.abort();
    term.closing.addEventListener("abort", onClosing, { once: true });
    if (!this.isRunning) void this.run();
    else this.nudge.abort();
    try {
      await progress.ended;
    } finally {
      term.closing.removeEventListener("abort", onClosing);
      this.gaugeLag(progress.shard);
    }
  }

  /** Ends with the last term. */
  private async run(): Promise<void> {
    const { clock, random } = this.options;
    this.isRunning = true;
    // Spreads the inserts of several processes over the interval.
    this.dueMs = clock.monotonicMs() + random.next() * limits.recordLingerMs;
    while (this.shards.size > 0) {
      try {
        if (this.isDue()) await this.turn();
        else await this.untilNudged();
      } catch (error) {
        this.failAll([...this.shards.values()], error);
      }
    }
    this.isRunning = false;
  }

  private isDue(): boolean {
    const nowMs = this.options.clock.monotonicMs();
    const shards = [...this.shards.values()];
    if (shards.some(({ isClosing }) => isClosing)) return true;
    if (nowMs < this.notBeforeMs) return false;
    return shards.some(({ isReady, hasMore }) => isReady && (hasMore || nowMs >= this.dueMs));
  }

  private async untilNudged(): Promise<void> {
    const { clock } = this.options;
    this.nudge = new AbortController();
    const leftMs = Math.max(this.dueMs, this.notBeforeMs) - clock.monotonicMs();
    // If all are busy or in doubt, it checks again: doubt ends without a notification.
    await sleep(clock, leftMs > 0 ? leftMs : limits.recordLingerMs, this.nudge.signal);
  }

  private async turn(): Promise<void> {
    const begunMs = this.options.clock.monotonicMs();
    const shards = [...this.shards.values()];
    const closing = shards.filter(({ isClosing }) => isClosing);
    // The event store has the last pieces: without this call the next owners would write them again needlessly.
    const last = closing.filter(({ done, term }) => done !== null && term.isSurelyHeld());
    const isInTime = begunMs >= this.notBeforeMs;
    const ready = isInTime ? shards.filter(({ isReady }) => isReady) : [];
    if (ready.length > 0) this.dueMs = begunMs + limits.recordLingerMs;
    if (ready.length + last.length > 0) await this.ask(ready, last);
    // One try only: a queue that does not answer must not delay the end.
    for (const progress of closing) this.end(progress);
  }

  private async ask(ready: readonly ShardProgress[], last: readonly ShardProgress[]): Promise<void> {
    const { queue } = this.options;
    const all = [...last, ...ready];
    const buildTurn = (progress: ShardProgress) => progress.turn(ready.includes(progress));
    try {
      this.take(await queue.record(all.map(buildTurn)), all);
      this.failures = 0;
    } catch (error) {
      if (isOutage(error)) return this.noteQueueFailure(error);
      if (all.length === 1) return this.failAll(all, error);
      // One shard has data that the queue cannot read: the others go on.
      const only = (of: readonly ShardProgress[], one: ShardProgress) => of.filter((progress) => progress === one);
      for (const progress of all) await this.ask(only(ready, progress), only(last, progress));
    }
  }

  private take(answer: RecordAnswer, asked: readonly ShardProgress[]): void {
    for (const progress of asked) progress.turned();
    for (const progress of asked) if (answer.fenced.includes(progress.shard)) this.end(progress);
    for (const shard of answer.more) {
      const progress = this.shards.get(shard);
      if (progress !== undefined) progress.hasMore = true;
    }
    const idle = new Set(asked);
    for (const batch of answer.batches) {
      const shares = this.pickShares(batch, asked);
      for (const { progress } of shares) {
        idle.delete(progress);
        progress.isBusy = true;
        // Behind all others.
        if (this.shards.delete(progress.shard)) this.shards.set(progress.shard, progress);
      }
      void this.write(batch, shares);
    }
    for (const { shard } of idle) this.gaugeLag(shard);
  }

  /** Returns the pieces of the batch that belong to the requested shards. */
  private pickShares(batch: RecordBatch, asked: readonly ShardProgress[]): Share[] {
    return batch.pieces.flatMap((piece) => {
      const progress = asked.find(({ shard }) => shard === piece.shard);
      return progress === undefined ? [] : [{ progress, piece }];
    });
  }

  private async write(batch: RecordBatch, shares: readonly Share[]): Promise<void> {
    try {
      await this.writer.write(batch, shares);
    } catch (error) {
      this.failAll(
        shares.map(({ progress }) => progress),
        error,
      );
    }
    for (const { progress } of shares) this.free(progress);
  }

  private free(progress: ShardProgress): void {
    progress.isBusy = false;
    this.nudge.abort();
  }

  private end(progress: ShardProgress): void {
    if (this.shards.get(progress.shard) === progress) this.shards.delete(progress.shard);
    progress.end();
  }

  private failAll(all: readonly ShardProgress[], error: unknown): void {
    for (const progress of all) {
      progress.fail(error);
      this.end(progress);
    }
  }

  private noteQueueFailure(error: unknown): void {
    const { telemetry, clock, random } = this.options;
    telemetry.count("recorder_queue_calls_failed");
    telemetry.log("debug", "the queue did not hand out a batch", { error: String(error) });
    this.notBeforeMs = clock.monotonicMs() + backOffMs(engineLimits.recordRetry, this.failures, random);
    this.failures += 1;
  }

  private gaugeLag(shard: number): void {
    this.options.telemetry.gauge("recorder_lag_seconds", 0, { shard: String(shard) });
  }
}
