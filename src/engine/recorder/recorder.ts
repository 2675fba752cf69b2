import type { Clock } from "../../domain/clock.ts";
import type { EventWriter } from "../../domain/event-store.ts";
import type { RecorderQueue } from "../../domain/queue.ts";
import type { Random } from "../../domain/random.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { ShardKeeper } from "../leases/shard-keeper.ts";
import { OutboxCopier } from "./outbox-copier.ts";

export interface RecorderOptions {
  readonly queue: RecorderQueue;
  readonly eventStore: EventWriter;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
  /** Names this process among all recorders; changes at every start. */
  readonly owner: string;
  readonly shards: number;
}

/**
 * The recorder role: copies the outboxes of this process's share of the shards into the event store. It copies all
 * shards together if one call of the queue takes all of them; in a cluster it copies each shard separately, so that no
 * node holds up another.
 */
export class Recorder {
  private readonly keeper: ShardKeeper;

  constructor(options: RecorderOptions) {
    const { queue, clock, telemetry, owner, shards } = options;
    const copierOfAll = queue.shardsPerRecord === "all" ? new OutboxCopier(options) : null;
    this.keeper = new ShardKeeper({
      leases: queue,
      role: "recorder",
      owner,
      shards,
      clock,
      telemetry,
      onTerm: (term) => (copierOfAll ?? new OutboxCopier(options)).copy(term),
    });
  }

  /** The shards that it records. */
  get shards(): readonly number[] {
    return this.keeper.shards;
  }

  start(): void {
    this.keeper.start();
  }

  /** Resolves after the writes in flight. Safe to repeat. */
  stop(): Promise<void> {
    return this.keeper.stop();
  }
}
