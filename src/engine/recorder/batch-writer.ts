import { backOffMs } from "../../domain/back-off.ts";
import { sleep } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import { eventTimeMs } from "../../domain/jobs/event.ts";
import {
  type EventWriter,
  RowsRefusedError,
  type StoredEventRow,
  type WriteAttempt,
  type WriteOutcome,
} from "../../domain/jobs/event-store.ts";
import type { RecordBatch, RecordPiece } from "../../domain/jobs/queue.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { engineLimits } from "../limits.ts";
import type { ShardProgress } from "./shard-progress.ts";

/** A piece of a batch, and the shard that it belongs to. */
export interface Share {
  readonly progress: ShardProgress;
  readonly piece: RecordPiece;
}

export interface BatchWriterOptions extends RuntimePorts {
  readonly eventStore: EventWriter;
  /** Called with rows that are now in the event store, in the order of their outbox. Must not throw. */
  onRecorded?(rows: readonly StoredEventRow[]): void;
  /** Called for a shard whose term must end, and which no longer waits for its piece. */
  onLetGo(progress: ShardProgress): void;
}

/** Refusals before a batch is split: a server that is being upgraded may refuse once. */
const REFUSALS_MAX = 3;

/** Writes batches until the event store has them, for as long as one of a batch's shards is held. */
export class BatchWriter {
  constructor(private readonly options: BatchWriterOptions) {}

  /** Reports the result to each share's progress, unless the share's term ends first. */
  async write(batch: RecordBatch, shares: readonly Share[]): Promise<void> {
    const { eventStore, clock, telemetry, onRecorded } = this.options;
    const rows = batch.pieces.flatMap((piece) => piece.rows);
    if (batch.state === "recorded") {
      onRecorded?.(rows);
      for (const { progress, piece } of shares) progress.recorded(piece, { wereThere: true, setAside: 0 });
      return;
    }
    let attempt = attemptAt(batch, shares);
    let held = await this.stillHeld(shares);
    for (let failures = 0, refusals = 0; held.length > 0; failures += 1) {
      for (const share of held) this.gaugeLag(share);
      const begunMs = clock.monotonicMs();
      try {
        const outcome = (await eventStore.write(batch.token, rows, attempt)) ?? NOTHING_SPECIAL;
        telemetry.time("event_write_seconds", (clock.monotonicMs() - begunMs) / 1000);
        if (failures > 0) telemetry.log("info", "the event store takes batches again", { token: batch.token });
        this.noteRecorded(batch, rows, outcome);
        onRecorded?.(rows);
        for (const { progress, piece } of held) progress.recorded(piece, outcome);
        return;
      } catch (error) {
        this.noteFailure(error, { token: batch.token, rows: rows.length, failures: failures + 1 });
        refusals = error instanceof RowsRefusedError ? refusals + 1 : 0;
      }
      if (refusals >= REFUSALS_MAX && batch.pieces.length > 1) {
        for (const { progress } of held) progress.wasRefused(batch.token);
        return;
      }
      attempt = refusals >= REFUSALS_MAX ? "apart" : "again";
      await this.pause(backOffMs(engineLimits.recordRetry, failures, this.options.random), held);
      held = await this.stillHeld(held);
    }
  }

  /**
   * Returns the shares whose terms are not closing, once the lease of one of them is surely held. If all are in doubt
   * it waits: the store may only be silent, and then no other process holds them.
   */
  private async stillHeld(shares: readonly Share[]): Promise<readonly Share[]> {
    for (let held = shares; ; ) {
      for (const { progress } of held) if (progress.term.closing.aborted) this.options.onLetGo(progress);
      held = held.filter(({ progress }) => !progress.term.closing.aborted);
      if (held.length === 0 || held.some(({ progress }) => progress.term.isSurelyHeld())) return held;
      await Promise.race(held.map(({ progress }) => progress.term.whenSurelyHeld()));
    }
  }

  /** Waits, but not beyond the closing of a term. */
  private pause(delayMs: number, shares: readonly Share[]): Promise<void> {
    return sleep(this.options.clock, delayMs, AbortSignal.any(shares.map(({ progress }) => progress.term.closing)));
  }

  private noteRecorded({ token }: RecordBatch, rows: readonly StoredEventRow[], { setAside }: WriteOutcome): void {
    const { telemetry } = this.options;
    telemetry.count("event_batches_recorded");
    telemetry.count("event_rows_recorded", {}, rows.length - setAside);
    telemetry.gauge("event_store_up", 1);
    if (setAside === 0) return;
    telemetry.count("quarantined", { what: "row" }, setAside);
    const fields = { token, rows: setAside };
    telemetry.log("error", "the event store refused rows, which were set aside in its table refused_rows", fields);
  }

  private noteFailure(error: unknown, fields: { token: string; rows: number; failures: number }): void {
    const { telemetry } = this.options;
    telemetry.count("event_writes_failed");
    telemetry.gauge("event_store_up", 0);
    // Whatever the reason, only a repeat can write the rows; an error other than a lost call needs a person.
    const level = isOutage(error) ? (fields.failures === 1 ? "warn" : "debug") : "error";
    telemetry.log(level, "the event store did not take a batch", { ...fields, error: String(error) });
  }

  /** Reports the age of the oldest waiting event; a shard's event ids rise, so that is the piece's first. */
  private gaugeLag({ progress, piece }: Share): void {
    const { clock, telemetry } = this.options;
    const oldest = piece.rows[0];
    const lagMs = oldest === undefined ? 0 : Math.max(0, clock.nowMs() - eventTimeMs(oldest.eventId));
    telemetry.gauge("recorder_lag_seconds", lagMs / 1000, { shard: String(progress.shard) });
  }
}

const NOTHING_SPECIAL: WriteOutcome = { wereThere: false, setAside: 0 };

function attemptAt({ state }: RecordBatch, shares: readonly Share[]): WriteAttempt {
  const isNew = state === "frozen" && shares.every(({ progress, piece }) => progress.attemptAt(piece) === "new");
  return isNew ? "new" : "again";
}
