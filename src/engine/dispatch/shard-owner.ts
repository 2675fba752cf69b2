import { BackOff } from "../../domain/back-off.ts";
import { type Clock, sleep } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import type { AskedJob, OwnersAnswer } from "../../domain/jobs/job-questions.ts";
import {
  FENCED,
  type PullRequest,
  type PullResult,
  type TenantQueue,
  type TenantQueuePull,
} from "../../domain/jobs/queue.ts";
import type { HeldQueue } from "../../domain/process-status.ts";
import { logFailure } from "../../domain/telemetry.ts";
import type { LeaseTerm } from "../leases/lease-term.ts";
import { engineLimits } from "../limits.ts";
import { type Backlog, PULL_BYTES_MAX } from "./backlog.ts";
import { DailyAllowances } from "./daily-allowances.ts";
import { Deliveries, type DeliveriesPorts } from "./deliveries.ts";
import { TenantActor } from "./tenant-actor.ts";
import type { TenantLookups } from "./tenant-lookups.ts";
import { Wakeup } from "./wakeup.ts";

export interface ShardOwnerPorts extends DeliveriesPorts {
  readonly lookups: TenantLookups;
  /** The payloads in the whole process's memory. */
  readonly backlog: Backlog;
  /** Returns how long a delivery in flight may be lent when the term closes. */
  lendMs(): number;
}

/**
 * The owner of a shard for one lease term: pulls its tenants' queued jobs, lets their actors deliver them, and records
 * the outcomes. Its whole state dies with the term.
 *
 * O1. No delivery starts unless the lease is surely held (a provider cannot be fenced). While that is in doubt, no
 *     delivery starts and none is broken off.
 * O2. `run` ends as soon as the shard can be handed over: by then the jobs in flight are lent, and their deliveries go
 *     on until `over` resolves. This process may own the shard again in the meantime: a lent job is in no tenant queue.
 * O3. The owner requests the names of all tenant queues with jobs at the start, after a pull whose answer got lost, and
 *     periodically: such a pull may also take effect late, and then its names reach no owner.
 */
export class ShardOwner {
  private readonly actors = new Map<string, TenantActor>();
  private readonly wantingJobs = new Set<TenantActor>();
  private readonly allowances: DailyAllowances;
  private readonly deliveries: Deliveries;
  private readonly wakeup: Wakeup;
  private readonly time: ShardTime;
  private isLost = false;
  private isInDoubt = false;
  /** Whether the last pull got no answer. */
  private isSuspect = false;

  constructor(
    private readonly ports: ShardOwnerPorts,
    private readonly term: LeaseTerm,
  ) {
    const { queue, clock, telemetry } = ports;
    this.wakeup = new Wakeup(clock);
    this.time = new ShardTime(clock);
    this.allowances = new DailyAllowances({ queue, lease: term.lease, clock, telemetry });
    this.deliveries = new Deliveries(ports, term, {
      shardTimeMs: () => this.time.nowMs(),
      onLanded: (settlements) => {
        for (const { kind, job } of settlements) if (kind !== "start") this.actor(job)?.settled(job);
      },
      onFenced: () => this.lose(),
    });
    term.lost.addEventListener("abort", () => this.lose(), { once: true });
    term.closing.addEventListener("abort", () => this.close(), { once: true });
  }

  /** Notifies the owner of queued jobs in the shard. */
  wake(): void {
    this.wakeup.notify();
  }

  /** Cancels a job for its tenant: it ends, unless its delivery has begun. */
  cancel(tenantQueue: TenantQueue, jobId: string): void {
    this.actor(tenantQueue)?.cancel(jobId);
  }

  /** Ends when the shard can be handed over. */
  async run(): Promise<void> {
    await this.pullUntilOver();
    this.close();
    // After a loss, deliveries that were broken off may still be on their way to a provider: this process may compete
    // for the shard again only after they have ended.
    if (this.isLost) await this.deliveries.over();
    else await this.deliveries.lend(this.ports.lendMs());
  }

  /** Resolves when no delivery of the term is in flight and every outcome is recorded. */
  over(): Promise<void> {
    return this.deliveries.over();
  }

  /** Returns at most `max` of the tenant queues whose jobs wait for more than their turn. */
  held(max: number): readonly HeldQueue[] {
    const held: HeldQueue[] = [];
    for (const actor of this.actors.values()) {
      if (held.length >= max) break;
      const { waits } = actor;
      if (waits !== "turn") held.push({ ...actor.tenantQueue, waits });
    }
    return held;
  }

  /** Null: no job of its tenant queue waits here. */
  whyWaits({ jobId, ...tenantQueue }: AskedJob): OwnersAnswer | null {
    if (this.deliveries.has(jobId)) return { waitsFor: null, forMs: null };
    return this.actor(tenantQueue)?.whyWaits() ?? null;
  }

  /** Aborts the provider calls in flight; the outcomes are still settled. */
  abortDeliveries(): void {
    this.deliveries.abort();
  }

  /** Ends the term's work at once, without further waits or writes. */
  abandon(): void {
    this.lose();
    this.deliveries.abandon();
  }

  private get isOver(): boolean {
    return this.isLost || this.term.closing.aborted;
  }

  private lose(): void {
    this.isLost = true;
    this.wakeup.notify();
    this.deliveries.abort();
  }

  /** Stops starting deliveries, and lends the jobs in flight at once, without waiting for a pull in flight. */
  private close(): void {
    for (const actor of this.actors.values()) actor.close();
    this.actors.clear();
    this.wantingJobs.clear();
    if (!this.isLost) void this.deliveries.lend(this.ports.lendMs());
    this.wakeup.notify();
  }

  /** Ends when the term closes or the lease turns out to be lost. */
  private async pullUntilOver(): Promise<void> {
    const { clock } = this.ports;
    let surveyDueMs = clock.monotonicMs();
    const retries = new BackOff(engineLimits.queueRetry, this.ports.random);
    while (!this.isOver) {
      const begunMs = clock.monotonicMs();
      const survey = begunMs >= surveyDueMs;
      let result: PullResult | typeof FENCED | null;
      try {
        result = await this.pull(survey);
      } catch (error) {
        this.reportFailedPull(error);
        surveyDueMs = begunMs;
        await sleep(clock, retries.nextMs(), this.term.closing);
        continue;
      }
      if (result === null || this.isOver) return;
      if (result === FENCED) return this.lose();
      if (survey) surveyDueMs = begunMs + engineLimits.surveyMs;
      retries.reset();
      this.apply(result);
      if (!result.more && this.wantingJobs.size === 0) {
        await this.wakeup.sleep(Math.min(result.nextDueMs ?? engineLimits.idlePollMs, engineLimits.idlePollMs));
      }
    }
  }

  /** Null: the term is over. */
  private async pull(survey: boolean): Promise<PullResult | typeof FENCED | null> {
    const { queue, backlog } = this.ports;
    const isReading = this.wantingJobs.size > 0;
    const place = isReading ? await backlog.beginPull(this.term.closing, this.isSuspect) : undefined;
    if (place === null) return null;
    const tenantQueues = this.beginPulls();
    try {
      const asked = { tenantQueues, survey, bytesMax: PULL_BYTES_MAX, ...this.time.ask() };
      const result = await queue.pull(this.term.lease, asked);
      this.isSuspect = false;
      if (result !== FENCED) this.time.heard(result);
      return result;
    } catch (error) {
      this.isSuspect = isOutage(error);
      for (const { tenantQueue } of tenantQueues) this.actor(tenantQueue)?.failPull();
      for (const { tenantQueue } of tenantQueues) this.look(this.actor(tenantQueue));
      throw error;
    } finally {
      place?.end();
    }
  }

  private reportFailedPull(error: unknown): void {
    const { telemetry } = this.ports;
    telemetry.count("queue_calls_failed", { call: "pull" });
    logFailure(telemetry, "pulling failed and is repeated", error);
  }

  private beginPulls(): TenantQueuePull[] {
    const pulls: TenantQueuePull[] = [];
    for (const actor of this.wantingJobs) {
      if (pulls.length === engineLimits.pullTenantQueuesMax) break;
      this.wantingJobs.delete(actor);
      const pull = actor.beginPull();
      if (pull !== null) pulls.push(pull);
    }
    return pulls;
  }

  private apply(result: PullResult): void {
    const { tenantQueues } = result;
    // Tenant queues that did not fit into the call come first in the next one.
    for (const { tenantQueue, jobs, more } of tenantQueues)
      if (jobs.length === 0) this.endPull(tenantQueue, jobs, more);
    for (const { tenantQueue, jobs, more } of tenantQueues) if (jobs.length > 0) this.endPull(tenantQueue, jobs, more);
    if (result.ready.length === 0) return;
    // A tenant queue that was read in this very call need not be read again for being named in it.
    const read = new Set(tenantQueues.map(({ tenantQueue }) => toQueueKey(tenantQueue)));
    for (const tenantQueue of result.ready) {
      if (read.has(toQueueKey(tenantQueue))) continue;
      const actor = this.actor(tenantQueue) ?? this.createActor(tenantQueue);
      actor?.hasJobs();
      this.look(actor);
    }
  }

  private endPull(tenantQueue: TenantQueue, jobs: PullResult["tenantQueues"][number]["jobs"], more: boolean): void {
    const actor = this.actor(tenantQueue);
    actor?.endPull(jobs, more);
    this.look(actor);
  }

  private actor(tenantQueue: TenantQueue): TenantActor | undefined {
    return this.actors.get(toQueueKey(tenantQueue));
  }

  /** Returns undefined for a channel that this process does not serve: its jobs stay in their tenant queue. */
  private createActor(tenantQueue: TenantQueue): TenantActor | undefined {
    const { lookups, clock, random, backlog, channels } = this.ports;
    const slots = this.ports.slots.get(tenantQueue.channel);
    const channel = channels.get(tenantQueue.channel);
    if (slots === undefined || channel === undefined) return undefined;
    const actor = new TenantActor({
      tenantQueue,
      lookups,
      slots,
      backlog,
      allowances: this.allowances,
      clock,
      random,
      mayDeliver: () => this.mayDeliver(),
      paceMs: (tenant) => channel.paceMs?.(tenant) ?? 0,
      start: (started) => void this.deliveries.start(actor, started),
      giveUp: (settlement, isOld) => void this.deliveries.giveUp(settlement, isOld),
      onChange: (changed) => {
        this.look(changed);
        if (this.wantingJobs.size > 0) this.wakeup.notify();
      },
    });
    this.actors.set(toQueueKey(tenantQueue), actor);
    return actor;
  }

  private mayDeliver(): boolean {
    if (this.isOver) return false;
    if (this.term.isSurelyHeld()) return true;
    if (!this.isInDoubt) void this.goOnAfterDoubt();
    return false;
  }

  private async goOnAfterDoubt(): Promise<void> {
    this.isInDoubt = true;
    const isHeld = await this.term.whenSurelyHeld();
    this.isInDoubt = false;
    if (isHeld) for (const actor of this.actors.values()) actor.contend();
  }

  /** Moves the actor to the set that matches its state. */
  private look(actor: TenantActor | undefined): void {
    if (actor === undefined || this.isOver) return;
    if (actor.planPull() !== null) this.wantingJobs.add(actor);
    else if (actor.isIdle) {
      this.actors.delete(toQueueKey(actor.tenantQueue));
      actor.close();
      return;
    }
  }
}

/** Accepts a job, too, which names its tenant queue. */
function toQueueKey({ tenantId, channel }: TenantQueue): string {
  return `${tenantId}/${channel}`;
}

/** Estimates a shard's time from the queue's answers and this process's monotonic clock. */
class ShardTime {
  private base: { readonly shardMs: number; readonly atMs: number } | null = null;
  private askedAtMs = 0;
  private confirmedSkewMs: number | null = null;

  constructor(private readonly clock: Clock) {}

  /** Null: the queue has not answered yet. */
  nowMs(): number | null {
    if (this.base === null) return null;
    return Math.floor(this.base.shardMs + this.clock.monotonicMs() - this.base.atMs);
  }

  /** Returns the time members of a pull that is sent now. */
  ask(): Pick<PullRequest, "shardTimeMs" | "confirmedSkewMs"> {
    const { confirmedSkewMs } = this;
    this.confirmedSkewMs = null;
    this.askedAtMs = this.clock.monotonicMs();
    return { shardTimeMs: this.nowMs(), confirmedSkewMs };
  }

  /**
   * Takes the time from the answer to the last pull, which has just arrived. The later of two estimates is more
   * accurate: an answer takes a while to arrive, and the shard's time never goes back, not even after the queue has
   * lost its state.
   */
  heard({ shardTimeMs: shardMs, estimatedSkewMs }: PullResult): void {
    const estimate = this.nowMs();
    const atMs = this.clock.monotonicMs();
    if (estimate === null || estimate < shardMs) this.base = { shardMs, atMs };
    if (atMs - this.askedAtMs <= engineLimits.promptPullMs) this.confirmedSkewMs = estimatedSkewMs;
  }
}
