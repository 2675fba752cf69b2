import type { Clock, Timer } from "../../domain/clock.ts";
import { acceptedMs } from "../../domain/ids.ts";
import type { QueuedJob } from "../../domain/job.ts";
import type { OwnersAnswer } from "../../domain/job-questions.ts";
import type { Settlement, TenantQueue, TenantQueuePull } from "../../domain/queue.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { dailyAllowance, untilNextUtcDayMs, utcDayAt } from "../../domain/warm-up.ts";
import { engineLimits } from "../limits.ts";
import { type Backlog, PULL_BYTES_MAX } from "./backlog.ts";
import type { ChannelSlots } from "./channel-slots.ts";
import type { DailyAllowances, DayAllowance } from "./daily-allowances.ts";
import type { Started, Starter } from "./deliveries.ts";
import type { FairScheduler } from "./fair-scheduler.ts";
import { gaveUpHeld, heldUntilMs, outageMsMin } from "./held-jobs.ts";
import { Pacer } from "./pacer.ts";
import type { RelayLane, Slot, Waiter } from "./relay-lane.ts";
import type { SlotTime } from "./slot-time.ts";
import { isPaused, purged, purgedBeforeMs } from "./steered-jobs.ts";
import type { Asker, TenantLookups } from "./tenant-lookups.ts";

/** Longest wait before another try to look a tenant up in a registry that does not answer. */
const LOOK_UP_RETRY_MS_MAX = 5_000;

export interface TenantActorOptions {
  readonly tenantQueue: TenantQueue;
  readonly lookups: TenantLookups;
  readonly slots: ChannelSlots;
  readonly backlog: Backlog;
  readonly allowances: DailyAllowances;
  readonly clock: Clock;
  /** Whether a delivery may start: the lease is surely held and the term is not closing. */
  mayDeliver(): boolean;
  /** Milliseconds until the tenant's sender may be used again, as its channel says (`Channel.paceMs`). */
  paceMs(tenant: Tenant): number;
  /** Delivers and settles the job, and gives the unit of the day's allowance back if nothing was sent. */
  start(started: Started): void;
  /** Ends a job that waits here without a delivery. `isOld` as in `Started`. */
  giveUp(settlement: Settlement, isOld: boolean): void;
  /** The actor may now want jobs or be idle. */
  onChange(actor: TenantActor): void;
}

/**
 * A tenant with queued jobs on a channel: its waiting jobs, its window of deliveries and its pace, for as long as it
 * has work in one lease term. Each of a tenant's channels has its own actor, so that no channel waits for another.
 *
 * T1. `open` jobs are waiting, being delivered or being settled; each stays in the tenant queue until it is settled.
 * T2. Entries are read once and in order: after `lastRead` while jobs are open, from the start when none are.
 * T3. At most `tenantWindowMax` deliveries are in flight, at no higher rate than the plan and the provider allow.
 * T4. The actor reads no more jobs than today's allowance lets it start: the remaining jobs stay queued, pending, for
 *     days if need be.
 * T5. It waits for its turn in one place: at the channel's prompt slots, or in its relay's lane.
 * T6. The process's backlog counts the payloads of the open jobs, from their pull until they are settled.
 * T7. While its tenant is paused it rests: nothing starts. Once no job is in flight it lets go of those that wait: they
 *     stay in the tenant queue, and are read from the start when it moves again.
 * T8. A purged job ends as soon as it is read. A tenant queue that rests, or has used up its day, is read on for them
 *     for a while after the purge, each entry once; other jobs are not kept.
 * T9. A job is old once its pull was asked for more than `lookAgainMs` ago: what that said of it may no longer hold.
 */
export class TenantActor implements Waiter, Starter, Asker {
  delivering = 0;
  readonly time: SlotTime;
  /** As its tenant was when it was last looked up. */
  isPaused = false;
  private waiting: QueuedJob[] = [];
  private openBytes = 0;
  private open = 0;
  private lastRead: string | null = null;
  /** Jobs that were read are neither open nor settled: the tenant queue is to be read again from its start. */
  private hasLetGo = false;
  /** Purged jobs may be among those that it passed since. */
  private mustReread = false;
  /** The purge that the tenant's last look-up named, and whether all waiting jobs were compared with it. */
  private purgedBeforeMs: number | null = null;
  private isSifted = true;
  private tenantQueueMayHaveMore = true;
  private isPulling = false;
  /** When the pull was asked for that is in flight, and the one of each job that waits or waited here (monotonic ms). */
  private pullAskedMs = 0;
  private readonly askedMs = new WeakMap<QueuedJob, number>();
  /** No old job starts before then (monotonic ms): the queue does not say whether it may still be sent. */
  private unansweredUntilMs = 0;
  private readonly pacer = new Pacer();
  private isLoading = false;
  private failedLoads = 0;
  /** The tenant that was just loaded, while the actor processes the answer. */
  private loaded: Tenant | null | undefined = undefined;
  private isClosed = false;
  private alarm: Timer | null = null;
  /** The tenant and its day for the next delivery; set by `isReady` for `startNext`. */
  private tenant: Tenant | null = null;
  private allowance: DayAllowance | null = null;
  /** The way to the tenant's relay when the tenant was last looked up. */
  private lane: RelayLane | null = null;
  private laneTenant: Tenant | null = null;
  private place: FairScheduler | RelayLane | null = null;
  /** The pace that held the next job up last, and until when (monotonic ms). */
  private paced: { readonly by: "plan_pace" | "throttled"; readonly untilMs: number } | null = null;
  /** The day's allowance was used up when it was last looked at. */
  private isDaySpent = false;
  /** When the hold of the first waiting job ends (unix ms); null: not yet determined. */
  private heldUntilMs: number | null = null;

  constructor(private readonly options: TenantActorOptions) {
    this.time = options.slots.timeOf(options.tenantQueue.tenantId);
  }

  get tenantQueue(): TenantQueue {
    return this.options.tenantQueue;
  }

  get next(): QueuedJob | undefined {
    return this.waiting[0];
  }

  get waitingJobs(): number {
    return this.waiting.length;
  }

  get wantsJobs(): boolean {
    return this.room() > 0 && (this.open === 0 || this.bytesRoom() > 0);
  }

  /** No open jobs, nothing to read, and no past delivery that the pace still remembers. */
  get isIdle(): boolean {
    if (this.open > 0 || this.tenantQueueMayHaveMore || this.hasLetGo || this.isPulling) return false;
    return this.pacer.settledInMs(this.options.clock.monotonicMs()) === 0;
  }

  /** The queue reports unread entries in the tenant queue. */
  hasJobs(): void {
    this.tenantQueueMayHaveMore = true;
  }

  /**
   * The next request to the tenant queue: a single entry if the process already holds as much as it may. Null: none
   * now.
   */
  beginPull(): TenantQueuePull | null {
    const room = this.room();
    const bytesMax = Math.min(PULL_BYTES_MAX, Math.floor(this.bytesRoom()));
    if (room <= 0 || (bytesMax <= 0 && this.open > 0)) return null;
    this.isPulling = true;
    this.pullAskedMs = this.options.clock.monotonicMs();
    const after = this.open > 0 || this.hasLetGo ? this.lastRead : null;
    return {
      tenantQueue: this.tenantQueue,
      after,
      entriesMax: bytesMax > 0 ? room : 1,
      bytesMax: Math.max(1, bytesMax),
    };
  }

  endPull(jobs: readonly QueuedJob[], more: boolean): void {
    this.isPulling = false;
    this.tenantQueueMayHaveMore = more;
    for (const job of jobs) {
      this.lastRead = job.entryId;
      if (this.hasLetGo && !this.isPurged(job)) continue;
      this.open += 1;
      this.addBytes(job.payload.length);
      if (job.suppressed !== null || job.isReported) {
        this.options.start({ job, tenant: null, unit: null, slot: null, isOld: false });
      } else {
        this.waiting.push(job);
        this.askedMs.set(job, this.pullAskedMs);
        this.heldUntilMs = null;
        this.isSifted = false;
      }
    }
    this.contend();
  }

  /** The call got no answer: the entries that it read count as unread. */
  failPull(): void {
    this.isPulling = false;
  }

  delivered(slot: Slot | null, heldMs: number): void {
    this.delivering -= 1;
    this.time.spent(heldMs, this.options.clock.monotonicMs());
    if (slot === null) {
      this.options.slots.prompt.release(this);
    } else slot.lane.end(slot);
    this.contend();
  }

  hold(job: QueuedJob, wasProbe: boolean): void {
    // Neither settled nor lent, it stays in its tenant queue for the next owner.
    if (this.isClosed) return;
    const place = wasProbe ? -1 : this.waiting.findIndex((other) => isReadBefore(job, other));
    this.waiting.splice(place === -1 ? this.waiting.length : place, 0, job);
    this.heldUntilMs = null;
    this.isSifted = false;
  }

  mayGoOn(): boolean {
    if (this.isClosed || !this.options.mayDeliver()) return false;
    const tenant = this.lookUp();
    // Undefined: it has changed, and is not known yet.
    return tenant !== undefined && !isPaused(tenant, this.tenantQueue.channel);
  }

  askLater(): void {
    this.unansweredUntilMs = this.options.clock.monotonicMs() + engineLimits.retryBaseMs;
  }

  /** A job's outcome is on disk. */
  settled(job: QueuedJob): void {
    this.open -= 1;
    this.addBytes(-job.payload.length);
    if (this.open === 0 && !this.tenantQueueMayHaveMore) this.wakeWhenPaceIsForgotten();
    this.options.onChange(this);
  }

  /** Ends a job that waits here. One that it does not have, or that has begun, stays as it is. */
  cancel(jobId: string): void {
    const at = this.waiting.findIndex((job) => job.jobId === jobId);
    if (at === -1 || !this.options.mayDeliver()) return;
    const [job] = this.waiting.splice(at, 1);
    this.heldUntilMs = null;
    if (job === undefined) return;
    const canceled: QueuedJob = { ...job, suppressed: "canceled" };
    this.options.start({ job: canceled, tenant: null, unit: null, slot: null, isOld: false });
  }

  /** Ends the term for jobs that have not started. */
  close(): void {
    this.isClosed = true;
    this.alarm?.cancel();
    this.alarm = null;
    this.waiting = [];
    this.addBytes(-this.openBytes);
    this.options.lookups.forget(this);
    this.place?.withdraw(this);
    this.place = null;
  }

  contend(): void {
    if (this.waiting.length === 0 || this.isClosed) return;
    // `isReady` checks whether this is still the right place.
    if (this.place === this.options.slots.prompt) return this.place.contend(this);
    const tenant = this.lookUp();
    if (tenant === undefined || !this.steer(tenant)) return;
    this.moveTo(this.placeOf(tenant));
  }

  prefer(isBetter: (job: QueuedJob) => boolean): void {
    const first = this.waiting[0];
    if (first === undefined || isBetter(first)) return;
    const at = this.waiting.findIndex(isBetter);
    if (at > 0) this.waiting.unshift(...this.waiting.splice(at, 1));
  }

  reviewHeld(lane: RelayLane): void {
    const { clock, giveUp } = this.options;
    const tenant = this.lookUp() ?? null;
    if (tenant === null || lane.awaySinceMs === null || !this.options.mayDeliver() || !this.steer(tenant)) return;
    // The tenant may have another relay by now.
    const place = this.placeOf(tenant);
    if (place !== lane) return this.moveTo(place);
    const { holdMs } = tenant.plan;
    this.heldUntilMs ??= Math.min(...this.waiting.map((job) => heldUntilMs(job, tenant)));
    if (clock.nowMs() < this.heldUntilMs || clock.monotonicMs() - lane.awaySinceMs < outageMsMin(holdMs)) return;
    const spent = this.waiting.filter((job) => clock.nowMs() >= heldUntilMs(job, tenant));
    this.waiting = this.waiting.filter((job) => !spent.includes(job));
    this.heldUntilMs = null;
    for (const job of spent) giveUp(gaveUpHeld(job, lane.awayWhy, holdMs), this.isOld(job));
    // Other actors may now have room.
    this.options.onChange(this);
  }

  isReady(): boolean {
    if (this.waiting.length === 0 || this.delivering >= engineLimits.tenantWindowMax) return false;
    if (!this.options.mayDeliver()) return false;
    const tenant = this.lookUp();
    if (tenant === undefined || !this.steer(tenant)) return false;
    const job = this.waiting[0];
    if (job === undefined) return false;
    // Its relay may have become prompt, or lost that status, or the tenant may have another relay now.
    const place = this.placeOf(tenant);
    if (place !== this.place) {
      this.moveTo(place);
      return false;
    }
    const allowance = this.allowanceOf(tenant);
    if (this.mayStart(allowance) === 0) return false;
    const nowMs = this.options.clock.monotonicMs();
    const unansweredMs = this.unansweredUntilMs - nowMs;
    if (unansweredMs > 0 && this.isOld(job)) {
      this.contendIn(unansweredMs);
      return false;
    }
    // The plan's pace first: asking the channel reserves a turn for the tenant, which it should then be able to use.
    const planMs = this.pacer.waitMs(nowMs, tenant?.plan.deliveriesPerSecond ?? null);
    const waitMs = planMs > 0 || tenant === null ? planMs : this.options.paceMs(tenant);
    if (waitMs > 0) {
      this.paced = { by: planMs > 0 ? "plan_pace" : "throttled", untilMs: nowMs + waitMs };
      this.contendIn(planMs > 0 ? Math.min(planMs, engineLimits.planLookMs) : waitMs);
      return false;
    }
    this.tenant = tenant;
    this.allowance = allowance;
    return true;
  }

  startNext(): void {
    const job = this.waiting.shift();
    if (job === undefined) return;
    this.delivering += 1;
    const slot = this.lane === null ? null : this.lane.begin(this, this.place !== this.lane);
    this.pacer.take(this.options.clock.monotonicMs(), this.tenant?.plan.deliveriesPerSecond ?? null);
    const unit = this.allowance && this.options.allowances.take(this.tenantQueue);
    this.options.start({ job, tenant: this.tenant, unit, slot, isOld: this.isOld(job) });
    if (this.wantsJobs) this.options.onChange(this);
  }

  /** What its jobs wait for, as it was when it last looked at them. */
  whyWaits(): OwnersAnswer {
    const { clock } = this.options;
    if (this.isPaused) return { waitsFor: "paused", forMs: null };
    if (this.lane !== null && this.lane.awaySinceMs !== null) return this.lane.whyAway();
    if (this.isDaySpent) return { waitsFor: "warm_up", forMs: untilNextUtcDayMs(clock.nowMs()) };
    const pacedMs = this.paced === null ? 0 : this.paced.untilMs - clock.monotonicMs();
    if (this.paced !== null && pacedMs > 0) return { waitsFor: this.paced.by, forMs: Math.ceil(pacedMs) };
    return { waitsFor: "turn", forMs: null };
  }

  tenantLoaded(tenant: Tenant | null): void {
    this.isLoading = false;
    this.failedLoads = 0;
    this.loaded = tenant;
    this.lookAgain();
    this.loaded = undefined;
  }

  tenantAway(): void {
    // The registry is away: jobs wait in their tenant queue, and no attempt is counted.
    this.isLoading = false;
    this.contendIn(Math.min(engineLimits.tenantRetryMs * 2 ** this.failedLoads, LOOK_UP_RETRY_MS_MAX));
    this.failedLoads = Math.min(this.failedLoads + 1, 10);
  }

  private addBytes(bytes: number): void {
    this.openBytes += bytes;
    this.options.backlog.add(bytes);
  }

  private bytesRoom(): number {
    return this.options.backlog.roomFor(this.openBytes);
  }

  private moveTo(place: FairScheduler | RelayLane): void {
    if (place !== this.place) this.place?.withdraw(this);
    this.place = place;
    place.contend(this);
  }

  /** Where the tenant's jobs wait for their turn. */
  private placeOf(tenant: Tenant | null): FairScheduler | RelayLane {
    const { slots } = this.options;
    if (tenant !== this.laneTenant) {
      this.lane = tenant === null ? null : slots.laneOf(tenant);
      this.laneTenant = tenant;
    }
    return this.lane === null || this.lane.takesPromptly(this) ? slots.prompt : this.lane;
  }

  /** The tenant (null: it is gone), or undefined while the lookup is in flight; the actor contends again afterwards. */
  private lookUp(): Tenant | null | undefined {
    if (this.loaded !== undefined) return this.loaded;
    if (this.isLoading) return undefined;
    const found = this.options.lookups.find(this.tenantQueue.tenantId, this);
    if (found === undefined) this.isLoading = true;
    return found;
  }

  private contendIn(delayMs: number): void {
    this.time.waitsSinceMs = null;
    this.alarm?.cancel();
    this.alarm = this.options.clock.setTimer(Math.ceil(delayMs), () => {
      this.alarm = null;
      this.lookAgain();
    });
  }

  /** The actor's tenant, its turn or another day may have come. */
  private lookAgain(): void {
    if (this.isClosed) return;
    this.contend();
    this.options.onChange(this);
  }

  /** How many entries it may read now. */
  private room(): number {
    if (this.isPulling || this.waiting.length >= engineLimits.refillEntries) return 0;
    if (!this.tenantQueueMayHaveMore && !this.hasLetGo) return 0;
    const openRoom = engineLimits.tenantQueueOpenMax - this.open;
    const tenant = openRoom > 0 ? this.lookUp() : undefined;
    if (tenant === undefined) return 0;
    const entriesMax = Math.min(engineLimits.pullEntriesPerTenantQueueMax, openRoom);
    const canMove = this.steer(tenant);
    const startRoom = canMove ? this.mayStart(this.allowanceOf(tenant)) - this.waiting.length : 0;
    if (startRoom <= 0) return this.waiting.length === 0 && this.isSweeping() ? entriesMax : 0;
    if (!this.goesOn()) return 0;
    return Math.min(entriesMax, startRoom);
  }

  /** Does what operators have decided about the tenant's jobs. False: nothing may start. */
  private steer(tenant: Tenant | null): boolean {
    const { channel } = this.tenantQueue;
    const beforeMs = purgedBeforeMs(tenant, channel);
    if (beforeMs !== this.purgedBeforeMs) {
      this.purgedBeforeMs = beforeMs;
      this.isSifted = false;
      this.mustReread = this.hasLetGo;
    }
    if (!this.isSifted) this.endPurged();
    this.isPaused = isPaused(tenant, channel);
    if (!this.isPaused) return true;
    this.place?.withdraw(this);
    this.place = null;
    this.letGo();
    this.contendIn(engineLimits.pausedLookMs);
    return false;
  }

  private endPurged(): void {
    if (this.purgedBeforeMs !== null && this.waiting.length > 0) {
      if (!this.options.mayDeliver()) return;
      const ending = this.waiting.filter((job) => this.isPurged(job));
      this.waiting = this.waiting.filter((job) => !this.isPurged(job));
      this.heldUntilMs = null;
      for (const job of ending) this.options.giveUp(purged(job), this.isOld(job));
    }
    this.isSifted = true;
  }

  private isOld(job: QueuedJob): boolean {
    const askedMs = this.askedMs.get(job);
    return askedMs === undefined || this.options.clock.monotonicMs() - askedMs > engineLimits.lookAgainMs;
  }

  private isPurged(job: QueuedJob): boolean {
    return this.purgedBeforeMs !== null && acceptedMs(job) < this.purgedBeforeMs;
  }

  /** Leaves the waiting jobs to the tenant queue, unless a job is in flight: read again, it could start twice. */
  private letGo(): void {
    if (this.open > this.waiting.length || (this.open === 0 && (this.hasLetGo || !this.tenantQueueMayHaveMore))) return;
    this.addBytes(-this.openBytes);
    this.open = 0;
    this.waiting = [];
    this.heldUntilMs = null;
    this.lastRead = null;
    this.hasLetGo = true;
    this.mustReread = this.isPulling;
    this.tenantQueueMayHaveMore = true;
  }

  /** Whether it reads only what was purged, because nothing else may start. */
  private isSweeping(): boolean {
    if (this.purgedBeforeMs === null) return false;
    if (this.options.clock.nowMs() - this.purgedBeforeMs > engineLimits.purgeSweepMs) return false;
    this.letGo();
    if (this.mustReread) {
      // What it has read and not settled would come a second time.
      if (this.open > 0) return false;
      this.mustReread = false;
      this.lastRead = null;
      this.tenantQueueMayHaveMore = true;
    }
    return this.hasLetGo && this.tenantQueueMayHaveMore;
  }

  /** What it let go of is read again, once what it has read meanwhile has ended. */
  private goesOn(): boolean {
    if (!this.hasLetGo) return true;
    if (this.open > 0) return false;
    this.hasLetGo = false;
    this.tenantQueueMayHaveMore = true;
    return true;
  }

  private allowanceOf(tenant: Tenant | null): DayAllowance | null {
    const day = utcDayAt(this.options.clock.nowMs());
    const perDay = tenant === null ? null : dailyAllowance(tenant, this.tenantQueue.channel, day);
    return perDay === null ? null : { tenantQueue: this.tenantQueue, day, perDay };
  }

  /**
   * Deliveries that the day's allowance still lets it start, including those of the jobs that wait here. 0 also until
   * the allowance is known.
   */
  private mayStart(allowance: DayAllowance | null): number {
    if (allowance === null) return Number.POSITIVE_INFINITY;
    const left = this.options.allowances.left(allowance, () => this.lookAgain());
    const untilTomorrowMs = untilNextUtcDayMs(this.options.clock.nowMs());
    this.isDaySpent = left === 0;
    if (left === 0) this.contendIn(Math.min(untilTomorrowMs, engineLimits.planLookMs));
    return left;
  }

  private wakeWhenPaceIsForgotten(): void {
    const waitMs = this.pacer.settledInMs(this.options.clock.monotonicMs());
    if (waitMs === 0) return;
    this.alarm?.cancel();
    this.alarm = this.options.clock.setTimer(Math.ceil(waitMs), () => this.options.onChange(this));
  }
}

/** Entry ids have the form `<n>-<m>`, and rise. */
function isReadBefore({ entryId: a }: QueuedJob, { entryId: b }: QueuedJob): boolean {
  return a.length === b.length ? a < b : a.length < b.length;
}
