import { type Clock, sleep } from "../core/clock.ts";
import { isOutage } from "../core/errors.ts";
import { eventTimeMs } from "../core/event.ts";
import { FENCED, type Fenced, type RecordBatch, type RecorderJournal } from "../core/journal.ts";
import { type LedgerWriter, RowsRefusedError, type WriteAttempt } from "../core/ledger.ts";
import { limits } from "../core/limits.ts";
import type { Random } from "../core/random.ts";
import { type LeaseTerm, ShardKeeper } from "../core/shard-keeper.ts";
import type { Telemetry } from "../core/telemetry.ts";

export interface RecorderOptions {
  readonly journal: RecorderJournal;
  readonly ledger: LedgerWriter;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** Names this process among all recorders; another one at every start. */
  readonly owner: string;
  /** How many shards there are. */
  readonly shards: number;
}

/**
 * The recorder role: copies the outboxes of this process's share of the shards into the ledger.
 *
 * Invariants:
 * R1. A batch is taken from the outbox only after the ledger has confirmed it: written first, marked as done after.
 * R2. A shard's batches are written one after the other, in the order of the outbox; a batch that fails is repeated,
 *     unchanged and under its token, before anything behind it is written. So events become visible in order.
 * R3. No write begins without a lease surely held. One that was begun may end late: its token is that of a frozen batch,
 *     and the next owner's first batch is the same one.
 * R4. All that is known of a shard's progress lives in one `ShardRecorder` per term.
 * R5. A batch is new to the ledger only where that is certain. The first one of a term may have been written by the owner
 *     before, at any time; so may the next where a part of that one was there, and one whose events are not beyond the last
 *     that this term has written, as after the loss of a Redis that had confirmed more than its replica got. Such a batch,
 *     and one whose write failed, is written as one that may be there.
 * R6. A batch that is refused `REFUSALS_MAX` times is written without the rows at fault. An outage is no refusal.
 */
export class Recorder {
  private readonly keeper: ShardKeeper;

  constructor(options: RecorderOptions) {
    const { journal, clock, telemetry, owner, shards } = options;
    this.keeper = new ShardKeeper({
      leases: journal,
      role: "recorder",
      owner,
      shards,
      clock,
      telemetry,
      onTerm: (term) => new ShardRecorder(options, term).run(),
    });
  }

  start(): void {
    this.keeper.start();
  }

  /** Resolves after the writes in progress. Safe to repeat. */
  stop(): Promise<void> {
    return this.keeper.stop();
  }
}

/** So often a batch must be refused before rows of it are set aside: a server that is being upgraded may refuse once. */
const REFUSALS_MAX = 3;

/** One term of one shard. */
class ShardRecorder {
  private readonly labels: { readonly shard: string };
  /** Whether the next batch may be in the ledger already (R5). */
  private mayBeThere = true;
  private lastEventId = -1;

  constructor(
    private readonly options: RecorderOptions,
    private readonly term: LeaseTerm,
  ) {
    this.labels = { shard: String(term.shard) };
  }

  /** Ends when the term is to end or the lease turns out to be lost. */
  async run(): Promise<void> {
    const { clock, random } = this.options;
    // Spreads the shards' inserts over the time between two of them.
    await this.pause(random.next() * limits.recordLingerMs);
    let done: RecordBatch | null = null;
    while (await this.mayGoOn()) {
      const batch = await this.record(done);
      done = null;
      if (batch === FENCED) break;
      const begunMs = clock.monotonicMs();
      if (batch !== null) {
        if (!(await this.write(batch))) break;
        done = batch;
      } else this.gaugeLag(null);
      // What came while the batch was written waits for company; a batch that was full did not hold it all.
      if (!batch?.more) await this.pause(begunMs + limits.recordLingerMs - clock.monotonicMs());
    }
    // The last batch is in the ledger: without this the next owner would write it once more, in vain.
    if (done !== null && this.term.isSurelyHeld()) await this.recordLast(done);
    this.gaugeLag(null);
  }

  /** Waits where the lease is in doubt: the store may only be silent, and then nobody else has it. */
  private async mayGoOn(): Promise<boolean> {
    return !this.term.closing.aborted && (this.term.isSurelyHeld() || (await this.term.whenSurelyHeld()));
  }

  /** The next batch, with `done` taken from the outbox; FENCED also where the term ends before the journal answers. */
  private async record(done: RecordBatch | null): Promise<RecordBatch | null | Fenced> {
    const { journal } = this.options;
    for (let failures = 0; await this.mayGoOn(); failures += 1) {
      try {
        return await journal.record(this.term.lease, done);
      } catch (error) {
        this.noteJournalFailure(error);
      }
      await this.backOff(failures);
    }
    // A batch that is left marked comes again, under the same token.
    return FENCED;
  }

  /** Once only: a journal that does not answer must not hold up the end. */
  private async recordLast(done: RecordBatch): Promise<void> {
    try {
      await this.options.journal.record(this.term.lease, done);
    } catch (error) {
      this.noteJournalFailure(error);
    }
  }

  /** Repeats until the ledger has the batch, and answers true; false where the term ends before. */
  private async write(batch: RecordBatch): Promise<boolean> {
    const { ledger, clock, telemetry } = this.options;
    let attempt = this.attemptAt(batch);
    for (let failures = 0, refusals = 0; await this.mayGoOn(); failures += 1) {
      this.gaugeLag(batch);
      const begunMs = clock.monotonicMs();
      try {
        const outcome = await ledger.write(batch.token, batch.rows, attempt);
        telemetry.time("ledger_write_seconds", (clock.monotonicMs() - begunMs) / 1000);
        if (failures > 0) telemetry.log("info", "the ledger takes batches again", this.labels);
        this.mayBeThere = outcome?.wereThere ?? false;
        this.noteRecorded(batch, outcome?.setAside ?? 0);
        return true;
      } catch (error) {
        this.noteLedgerFailure(error, batch, failures);
        refusals = error instanceof RowsRefusedError ? refusals + 1 : 0;
        attempt = refusals >= REFUSALS_MAX ? "apart" : "again";
      }
      await this.backOff(failures);
    }
    return false;
  }

  private attemptAt({ rows }: RecordBatch): WriteAttempt {
    const isBeyond = rows.every(({ eventId }) => eventId > this.lastEventId);
    return this.mayBeThere || !isBeyond ? "again" : "new";
  }

  private noteRecorded({ rows, token }: RecordBatch, setAside: number): void {
    const { telemetry } = this.options;
    for (const { eventId } of rows) this.lastEventId = Math.max(this.lastEventId, eventId);
    telemetry.count("ledger_batches_recorded");
    telemetry.count("ledger_rows_recorded", {}, rows.length - setAside);
    telemetry.gauge("ledger_up", 1);
    if (setAside === 0) return;
    telemetry.count("quarantined", { what: "row" }, setAside);
    const fields = { ...this.labels, token, rows: setAside };
    telemetry.log("error", "the ledger refused rows, which were set aside in its table refused_rows", fields);
  }

  private backOff(failures: number): Promise<void> {
    const longestMs = Math.min(limits.recordRetryMs * 2 ** failures, limits.recordRetryMsMax);
    // Half of it is chance, so that shards which failed together do not come back together.
    return this.pause(longestMs * (0.5 + this.options.random.next() / 2));
  }

  /** Cut short when the term is to end. */
  private pause(delayMs: number): Promise<void> {
    return sleep(this.options.clock, Math.max(0, delayMs), this.term.closing);
  }

  private noteLedgerFailure(error: unknown, { token, rows }: RecordBatch, failures: number): void {
    const { telemetry } = this.options;
    telemetry.count("ledger_writes_failed");
    telemetry.gauge("ledger_up", 0);
    // Whatever the reason, nothing but a repeat can bring the rows in; one that is not a lost call needs a person.
    const expected = isOutage(error);
    const level = expected ? (failures === 0 ? "warn" : "debug") : "error";
    const fields = { ...this.labels, token, rows: rows.length, failures: failures + 1, error: String(error) };
    telemetry.log(level, "the ledger did not take a batch", fields);
  }

  /** Throws on what is not a failure of the journal to answer: the term then ends with it. */
  private noteJournalFailure(error: unknown): void {
    if (!isOutage(error)) throw error;
    this.options.telemetry.count("recorder_journal_calls_failed");
    this.options.telemetry.log("debug", "the journal did not hand out a batch", {
      ...this.labels,
      error: String(error),
    });
  }

  /** How old the oldest event is that waits; a shard's event ids rise, so it is the batch's first. */
  private gaugeLag(batch: RecordBatch | null): void {
    const { clock, telemetry } = this.options;
    const oldest = batch?.rows[0];
    const lagMs = oldest === undefined ? 0 : Math.max(0, clock.nowMs() - eventTimeMs(oldest.eventId));
    telemetry.gauge("recorder_lag_seconds", lagMs / 1000, this.labels);
  }
}
