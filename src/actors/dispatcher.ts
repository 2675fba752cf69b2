import type { Channel } from "../core/channel.ts";
import type { Clock } from "../core/clock.ts";
import type { ChannelName } from "../core/job.ts";
import type { OwnerJournal } from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import type { Random } from "../core/random.ts";
import { type LeaseTerm, ShardKeeper } from "../core/shard-keeper.ts";
import type { Telemetry } from "../core/telemetry.ts";
import type { TenantDirectory } from "../core/tenant.ts";
import { FairScheduler } from "./fair-scheduler.ts";
import { fillSuppressions, type SuppressionFiller } from "./fill-suppressions.ts";
import { ShardOwner } from "./shard-owner.ts";

export interface DispatcherOptions {
  readonly journal: OwnerJournal;
  readonly directory: TenantDirectory;
  readonly channels: readonly Channel[];
  readonly suppressions: SuppressionFiller;
  /** Names this process among all dispatchers; another one at every start. */
  readonly owner: string;
  readonly shards: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly telemetry: Telemetry;
}

/** A process's share in delivering: holds its shards, and shares each channel's slots between their tenants. */
export class Dispatcher {
  private readonly owners = new Map<number, ShardOwner>();
  private readonly channels: ReadonlyMap<ChannelName, Channel>;
  private readonly schedulers: ReadonlyMap<ChannelName, FairScheduler>;
  private readonly keeper: ShardKeeper;
  private unsubscribe: (() => void) | null = null;
  private stopped: Promise<void> | null = null;

  constructor(private readonly options: DispatcherOptions) {
    const { journal, channels, owner, shards, clock, telemetry } = options;
    this.channels = new Map(channels.map((channel) => [channel.name, channel]));
    this.schedulers = new Map(channels.map((channel) => [channel.name, new FairScheduler(channel.slots)]));
    this.keeper = new ShardKeeper({
      leases: journal,
      role: "dispatcher",
      owner,
      shards,
      clock,
      telemetry,
      onTerm: (term) => this.ownShard(term),
    });
  }

  start(): void {
    if (this.unsubscribe !== null) return;
    this.unsubscribe = this.options.journal.onMail((shard) => this.owners.get(shard)?.wake());
    this.keeper.start();
  }

  /**
   * Starts nothing new, lets what is under way finish, and gives the shards back. Deliveries that take too long are
   * aborted and tried again by the next owner. Resolves within `limits.drainMs` and a moment; safe to repeat.
   */
  stop(): Promise<void> {
    this.stopped ??= this.drain();
    return this.stopped;
  }

  private async drain(): Promise<void> {
    const { clock } = this.options;
    const abort = clock.setTimer(limits.drainAbortMs, () => this.forEachOwner((owner) => owner.abortDeliveries()));
    const abandon = clock.setTimer(limits.drainMs, () => this.forEachOwner((owner) => owner.abandon()));
    await this.keeper.stop();
    abort.cancel();
    abandon.cancel();
    this.unsubscribe?.();
  }

  private forEachOwner(act: (owner: ShardOwner) => void): void {
    for (const owner of this.owners.values()) act(owner);
  }

  private async ownShard(term: LeaseTerm): Promise<void> {
    const { journal, directory, suppressions, clock, random, telemetry } = this.options;
    if (!(await fillSuppressions(suppressions, term, { clock, telemetry }))) return;
    const owner = new ShardOwner(
      {
        journal,
        directory,
        channels: this.channels,
        schedulers: this.schedulers,
        clock,
        random,
        telemetry,
        isBacklogFull: () => this.backlogBytes() >= limits.backlogBytesMax,
      },
      term,
    );
    this.owners.set(term.shard, owner);
    try {
      await owner.run();
    } finally {
      this.owners.delete(term.shard);
    }
  }

  private backlogBytes(): number {
    let bytes = 0;
    for (const owner of this.owners.values()) bytes += owner.backlogBytes;
    return bytes;
  }
}
