import type { Channel } from "../../domain/channels/channel.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { AskedJob, OwnersAnswer } from "../../domain/jobs/job-questions.ts";
import type { OwnerQueue } from "../../domain/jobs/queue.ts";
import { limits } from "../../domain/limits.ts";
import type { AwayRelay, HeldQueue } from "../../domain/process-status.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import type { TenantDirectory } from "../../domain/tenants/tenant.ts";
import type { Tracer } from "../../domain/tracing.ts";
import { type LeaseTerm, ShardKeeper } from "../leases/shard-keeper.ts";
import { Backlog } from "./backlog.ts";
import { ChannelSlots } from "./channel-slots.ts";
import { FallbackTurns, type FallbackTurnsPorts } from "./fallback-turns.ts";
import { fillSuppressions, type SuppressionFiller } from "./fill-suppressions.ts";
import { JobNotes } from "./job-notes.ts";
import { ShardOwner } from "./shard-owner.ts";
import { TenantLookups } from "./tenant-lookups.ts";

/** A lent delivery gets this long beyond its time-out; then its job returns to its tenant queue. */
const LEND_GRACE_MS = 4_000;

type HistoryPorts = Pick<FallbackTurnsPorts, "queue" | "eventStore">;

export interface DispatcherOptions extends RuntimePorts {
  readonly queue: OwnerQueue;
  readonly directory: TenantDirectory;
  readonly channels: readonly Channel[];
  readonly suppressions: SuppressionFiller;
  /** Reads the histories of messages, which decide about their fallbacks. */
  readonly histories: HistoryPorts;
  /** Identifies this process among all dispatchers; changes at every start. */
  readonly owner: string;
  readonly shards: number;
  /** Absent: tracing is off. */
  readonly tracer?: Tracer;
  /** The share of finished jobs that gets a log line, 0 to 1; default 0. Failures have lines of their own. */
  readonly logShare?: number;
}

/** This process's share of the deliveries: owns its shards, and shares each channel's slots between their tenants. */
export class Dispatcher {
  private readonly owners = new Map<number, ShardOwner>();
  /** Owners that handed over their shard and still have lent jobs in flight. */
  private readonly ending = new Map<ShardOwner, Promise<void>>();
  private readonly channels: ReadonlyMap<ChannelName, Channel>;
  private readonly slots: ReadonlyMap<ChannelName, ChannelSlots>;
  private readonly backlog: Backlog;
  private readonly lookups: TenantLookups;
  private readonly notes: JobNotes;
  private readonly fallbacks: FallbackTurns;
  private readonly keeper: ShardKeeper;
  private subscriptions: readonly (() => void)[] = [];
  private isStopping = false;
  private stopped: Promise<void> | null = null;

  constructor(private readonly options: DispatcherOptions) {
    const { queue, directory, channels, owner, shards, clock, random, telemetry } = options;
    this.channels = new Map(channels.map((channel) => [channel.name, channel]));
    this.slots = new Map(
      channels.map((channel) => [channel.name, new ChannelSlots({ channel, clock, random, telemetry })]),
    );
    this.backlog = new Backlog(clock);
    this.lookups = new TenantLookups(directory);
    this.notes = new JobNotes({ clock, telemetry, logShare: options.logShare ?? 0 });
    this.fallbacks = new FallbackTurns({ ...options.histories, clock, random, telemetry });
    this.keeper = new ShardKeeper({
      leases: queue,
      role: "dispatcher",
      owner,
      shards,
      clock,
      telemetry,
      onTerm: (term) => this.ownShard(term),
    });
  }

  start(): void {
    if (this.subscriptions.length > 0) return;
    const { queue } = this.options;
    this.subscriptions = [
      queue.onJobs((shard) => this.owners.get(shard)?.wake()),
      queue.onCancel((shard, tenantQueue, jobId) => this.owners.get(shard)?.cancel(tenantQueue, jobId)),
    ];
    this.keeper.start();
  }

  /**
   * Stops starting deliveries, lends the jobs in flight and hands the shards over at once; then lets deliveries end.
   * Deliveries that take too long are aborted, and the next owner tries them again. Resolves shortly after
   * `limits.drainMs` at the latest; safe to repeat.
   */
  stop(): Promise<void> {
    // First: draining lends at once, for as long as a stop allows.
    this.isStopping = true;
    this.stopped ??= this.drain();
    return this.stopped;
  }

  /** Returns the relays and providers that are away for this process: a bounded number per channel. */
  away(): readonly AwayRelay[] {
    return Array.from(this.slots.values(), (slots) => slots.away()).flat();
  }

  /** The shards that this process delivers. */
  get shards(): readonly number[] {
    return [...this.owners.keys()];
  }

  /** Returns at most `max` of the tenant queues whose jobs wait for more than their turn. */
  held(max: number): readonly HeldQueue[] {
    const held: HeldQueue[] = [];
    for (const owner of this.owners.values()) held.push(...owner.held(max - held.length));
    return held;
  }

  /** Returns why the job waits; null: this process does not deliver its shard, or has no jobs of its tenant queue. */
  whyWaits(shard: number, job: AskedJob): OwnersAnswer | null {
    return this.owners.get(shard)?.whyWaits(job) ?? null;
  }

  /** Bytes of payloads in this process's memory. */
  get backlogBytes(): number {
    return this.backlog.bytes;
  }

  private async drain(): Promise<void> {
    const { clock } = this.options;
    const abort = clock.setTimer(limits.drainAbortMs, () => this.forEachOwner((owner) => owner.abortDeliveries()));
    const abandon = clock.setTimer(limits.drainMs, () => this.forEachOwner((owner) => owner.abandon()));
    await this.keeper.stop();
    await Promise.all(this.ending.values());
    abort.cancel();
    abandon.cancel();
    for (const unsubscribe of this.subscriptions) unsubscribe();
    this.notes.stop();
  }

  private forEachOwner(act: (owner: ShardOwner) => void): void {
    for (const owner of this.owners.values()) act(owner);
    for (const owner of this.ending.keys()) act(owner);
  }

  private async ownShard(term: LeaseTerm): Promise<void> {
    const { queue, suppressions, clock, random, telemetry, tracer } = this.options;
    if (!(await fillSuppressions(suppressions, term, { clock, random, telemetry }))) return;
    const { channels, slots, backlog, lookups, notes, fallbacks } = this;
    const lendMs = () => (this.isStopping ? limits.drainMs : limits.deliveryTimeoutMs) + LEND_GRACE_MS;
    const common = { clock, random, telemetry, notes, fallbacks, ...(tracer !== undefined && { tracer }) };
    const owner = new ShardOwner({ queue, channels, slots, ...common, lookups, backlog, lendMs }, term);
    this.owners.set(term.shard, owner);
    try {
      await owner.run();
    } finally {
      this.owners.delete(term.shard);
      this.ending.set(
        owner,
        owner.over().then(() => void this.ending.delete(owner)),
      );
    }
  }
}
