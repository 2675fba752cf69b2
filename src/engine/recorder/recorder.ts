import type { EventWriter, StoredEventRow } from "../../domain/jobs/event-store.ts";
import type { RecorderQueue } from "../../domain/jobs/queue.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { type LeaseTerm, ShardKeeper } from "../leases/shard-keeper.ts";
import { OutboxCopier, type OutboxCopierOptions } from "./outbox-copier.ts";

/** Processes recorded events in the process that records them. */
export interface RecordFollower {
  /** Called with rows that are now in the event store, of shards that this process holds, or held a moment ago. */
  onRecorded(rows: readonly StoredEventRow[]): void;
  /** Follows a shard until `ending` aborts. Resolves when the shard may be handed over. */
  follow(term: LeaseTerm, ending: AbortSignal): Promise<void>;
}

export interface RecorderOptions extends RuntimePorts {
  readonly queue: RecorderQueue;
  readonly eventStore: EventWriter;
  /** Identifies this process among all recorders; changes at every start. */
  readonly owner: string;
  readonly shards: number;
  /** Absent: recorded events are not followed. */
  readonly follower?: RecordFollower;
}

/**
 * The recorder role: copies the outboxes of this process's share of the shards into the event store. It copies all
 * shards together if one call of the queue takes all of them; in a cluster it copies each shard separately, so that one
 * node does not delay another.
 */
export class Recorder {
  private readonly keeper: ShardKeeper;

  constructor(options: RecorderOptions) {
    const { queue, clock, telemetry, owner, shards, follower } = options;
    const copying: OutboxCopierOptions = {
      ...options,
      ...(follower && { onRecorded: (rows) => follower.onRecorded(rows) }),
    };
    const copierOfAll = queue.shardsPerRecord === "all" ? new OutboxCopier(copying) : null;
    this.keeper = new ShardKeeper({
      leases: queue,
      role: "recorder",
      owner,
      shards,
      clock,
      telemetry,
      onTerm: (term) => followed(follower, term, () => (copierOfAll ?? new OutboxCopier(copying)).copy(term)),
    });
  }

  /** The shards that this process records. */
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

/** Follows a term beyond its copying, which must not wait for the follower. */
async function followed(
  follower: RecordFollower | undefined,
  term: LeaseTerm,
  copy: () => Promise<void>,
): Promise<void> {
  const ended = new AbortController();
  const following = follower?.follow(term, ended.signal);
  try {
    await copy();
  } finally {
    ended.abort();
    await following;
  }
}
