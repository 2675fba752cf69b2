import type { Clock } from "../../domain/clock.ts";
import type { LedgerWriter } from "../../domain/event-store.ts";
import type { RecorderJournal } from "../../domain/queue.ts";
import type { Random } from "../../domain/random.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { ShardKeeper } from "../leases/shard-keeper.ts";
import { OutboxCopier } from "./outbox-copier.ts";

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
 * The recorder role: copies the outboxes of this process's share of the shards into the ledger. All of them together where
 * one call of the journal takes all shards; in a cluster each by itself, so that no part of it holds up another.
 */
export class Recorder {
  private readonly keeper: ShardKeeper;

  constructor(options: RecorderOptions) {
    const { journal, clock, telemetry, owner, shards } = options;
    const copierOfAll = journal.shardsPerRecord === "all" ? new OutboxCopier(options) : null;
    this.keeper = new ShardKeeper({
      leases: journal,
      role: "recorder",
      owner,
      shards,
      clock,
      telemetry,
      onTerm: (term) => (copierOfAll ?? new OutboxCopier(options)).copy(term),
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
