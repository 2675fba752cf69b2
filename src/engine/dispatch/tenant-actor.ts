import { BackOff } from "../../domain/back-off.ts";
import type { Clock, Timer } from "../../domain/clock.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { OwnersAnswer } from "../../domain/jobs/job-questions.ts";
import type { Settlement, TenantQueue, TenantQueuePull } from "../../domain/jobs/queue.ts";
import { limits } from "../../domain/limits.ts";
import { Pace } from "../../domain/pace.ts";
import type { QueueWait } from "../../domain/process-status.ts";
import type { Random } from "../../domain/random.ts";
import { paceFor } from "../../domain/tenants/reputation.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { dailyAllowance, untilNextUtcDayMs, utcDayAt } from "../../domain/tenants/warm-up.ts";
import { engineLimits } from "../limits.ts";
import {
  type Action,
  type ActorEvent,
  ActorState,
  decide,
  hasRoom,
  isDone,
  putBack,
  UNSEEN,
} from "./actor-decision.ts";
import type { Backlog } from "./backlog.ts";
import type { ChannelSlots } from "./channel-slots.ts";
import type { DailyAllowances } from "./daily-allowances.ts";
import type { Started, Starter } from "./deliveries.ts";
import type { FairScheduler } from "./fair-scheduler.ts";
import type { RelayLane, Slot, Waiter } from "./relay-lane.ts";
import type { SlotTime } from "./slot-time.ts";
import { isPaused } from "./steered-jobs.ts";
import type { Asker, TenantLookups } from "./tenant-lookups.ts";

export interface TenantActorOptions {
  readonly tenantQueue: TenantQueue;
  readonly lookups: TenantLookups;
  readonly slots: ChannelSlots;
  readonly backlog: Backlog;
  readonly allowances: DailyAllowances;
  readonly clock: Clock;
  readonly random: Random;
  /** Whether a delivery may start: the lease is surely held and the term is not closing. */
  mayDeliver(): boolean;
  /**
   * Returns the milliseconds until the tenant's sender may be used again, according to its channel (`Channel.paceMs`).
   */
  paceMs(tenant: Tenant): number;
  /** Delivers and settles the job, and gives the unit of the day's allowance back if no message was sent. */
  start(started: Started): void;
  /** Ends a job that waits here without a delivery. `isOld` as in `Started`. */
  giveUp(settlement: Settlement, isOld: boolean): void;
  /** Called when the actor may want jobs or be idle. */
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
 * T5. It waits for its turn either at the channel's prompt slots or in its relay's lane, never both.
 * T6. The process's backlog counts the payloads of the open jobs, from their pull until they are settled.
 * T7. While its tenant is paused it rests: no delivery starts. Once no job is in flight it drops its waiting jobs: they
 *     stay in the tenant queue, and are read from the start when it resumes.
 * T8. A purged job ends as soon as it is read. A tenant queue that rests, or has used up its day, is read on for them
 *     for a while after the purge, each entry once; other jobs are not kept.
 * T9. A job is old once its pull was requested more than `lookAgainMs` ago: the pull's information about it may be out
 *     of date.
 */
export class TenantActor implements Waiter, Starter, Asker {
  readonly time: SlotTime;
  private readonly state: ActorState = new ActorState();
  /** When the pull of each job that waits or waited here was requested (monotonic ms). */
  private readonly askedMs = new WeakMap<QueuedJob, number>();
  private readonly pace = new Pace(limits.paceBurstMs);
  private readonly loadRetries: BackOff;
  /** The tenant that was just loaded, while the actor processes the answer. */
  private loaded: Tenant | null | undefined = undefined;
  private alarm: Timer | null = null;
  /** The tenant of the next delivery, and whether that takes a unit of its day; set by `isReady` for `startNext`. */
  private chosen: { readonly tenant: Tenant | null; readonly isLimited: boolean } | null = null;
  /** The lane to the tenant's relay, as of the last tenant lookup. */
  private way: { readonly tenant: Tenant | null; readonly lane: RelayLane | null } = { tenant: null, lane: null };
  private place: FairScheduler | RelayLane | null = null;

  constructor(private readonly options: TenantActorOptions) {
    this.time = options.slots.getSlotTime(options.tenantQueue.tenantId);
    this.loadRetries = new BackOff(engineLimits.tenantRetry, options.random);
  }

  get tenantQueue(): TenantQueue {
    return this.options.tenantQueue;
  }

  get next(): QueuedJob | undefined {
    return this.state.waiting[0];
  }

  get waitingJobs(): number {
    return this.state.waiting.length;
  }

  /** As of the last tenant lookup. */
  get isPaused(): boolean {
    return this.state.hold.kind === "paused";
  }

  /** Whether it has no open jobs, no entries to read, and no past delivery that still affects the pace. */
  get isIdle(): boolean {
    return isDone(this.state) && this.pace.settledInMs(this.options.clock.monotonicMs()) === 0;
  }

  /** Notifies the actor of unread entries in the tenant queue. */
  hasJobs(): void {
    this.become({ phase: { ...this.state.phase, more: true } });
  }

  /** Plans the next read, which may send for its tenant, end purged jobs and let it rest. Null: no read now. */
  planPull(): TenantQueuePull | null {
    const tenant = hasRoom(this.state) ? this.lookUp() : undefined;
    if (tenant === undefined) return null;
    const left = this.steer(tenant) ? this.left(tenant) : 0;
    const bytesRoom = this.options.backlog.roomFor(this.state.openBytes);
    const read = this.hear({ kind: "read", left, bytesRoom }).find((action) => action.kind === "read");
    return read === undefined ? null : { tenantQueue: this.tenantQueue, ...read.pull };
  }

  beginPull(): TenantQueuePull | null {
    const pull = this.planPull();
    if (pull !== null) this.become({ pullAskedMs: this.options.clock.monotonicMs() });
    return pull;
  }

  endPull(jobs: readonly QueuedJob[], more: boolean): void {
    for (const job of jobs) this.askedMs.set(job, this.state.pullAskedMs ?? 0);
    this.hear({ kind: "pulled", jobs, more });
    this.contend();
  }

  /** Handles a pull without an answer: the entries that it read count as unread. */
  failPull(): void {
    this.become({ pullAskedMs: null });
  }

  delivered(slot: Slot | null, heldMs: number): void {
    this.become({ delivering: this.state.delivering - 1 });
    this.time.spent(heldMs, this.options.clock.monotonicMs());
    if (slot === null) this.options.slots.prompt.release(this);
    else slot.lane.end(slot);
    this.contend();
  }

  hold(job: QueuedJob, wasProbe: boolean): void {
    // Neither settled nor lent, it stays in its tenant queue for the next owner.
    if (this.isClosed) return;
    this.become({ ...UNSEEN, waiting: putBack(this.state.waiting, job, wasProbe) });
  }

  mayGoOn(): boolean {
    const tenant = this.options.mayDeliver() ? this.lookUp() : undefined;
    // Undefined: it has changed, and is still being loaded.
    return tenant !== undefined && !isPaused(tenant, this.tenantQueue.channel);
  }

  isThrottled(tenant: Tenant): boolean {
    const forMs = this.options.paceMs(tenant);
    if (forMs > 0) this.hear({ kind: "throttled", forMs });
    return forMs > 0;
  }

  askLater(): void {
    this.become({ unansweredUntilMs: this.options.clock.monotonicMs() + engineLimits.jobRetry.firstMs });
  }

  /** Removes a job whose outcome is on disk. */
  settled(job: QueuedJob): void {
    const { open, openBytes } = this.state;
    this.become({ open: open - 1, openBytes: openBytes - job.payload.length });
    // It is idle once its pace no longer depends on past deliveries.
    const paceMs = isDone(this.state) ? this.pace.settledInMs(this.options.clock.monotonicMs()) : 0;
    if (paceMs > 0) this.lookIn(paceMs);
    this.options.onChange(this);
  }

  /** Ends a job that waits here. A job that is not here, or has begun, stays as it is. */
  cancel(jobId: string): void {
    const job = this.state.waiting.find((each) => each.jobId === jobId);
    if (job === undefined || !this.options.mayDeliver()) return;
    this.become({ waiting: this.state.waiting.filter((each) => each !== job) });
    this.act({ kind: "end", job: { ...job, suppressed: "canceled" } });
  }

  /** Ends the term for jobs that have not started. */
  close(): void {
    this.become({ phase: { kind: "closed", lastRead: null, more: false }, waiting: [], openBytes: 0 });
    this.alarm?.cancel();
    this.leave();
    this.options.lookups.forget(this);
  }

  contend(): void {
    if (this.waitingJobs === 0) return;
    // `isReady` checks whether this is still the right scheduler.
    if (this.place === this.options.slots.prompt) return this.place.contend(this);
    const tenant = this.lookUp();
    if (tenant !== undefined && this.steer(tenant)) this.moveTo(this.chooseScheduler(tenant));
  }

  prefer(isBetter: (job: QueuedJob) => boolean): void {
    const { waiting } = this.state;
    const job = waiting.find(isBetter);
    if (job === undefined || job === waiting[0]) return;
    this.become({ waiting: [job, ...waiting.filter((each) => each !== job)] });
  }

  reviewHeld(lane: RelayLane): void {
    const { clock, mayDeliver } = this.options;
    const tenant = this.lookUp() ?? null;
    if (tenant === null || lane.awaySinceMs === null || !mayDeliver() || !this.steer(tenant)) return;
    // The tenant may have another relay by now.
    const place = this.chooseScheduler(tenant);
    if (place !== lane) return this.moveTo(place);
    const awayMs = clock.monotonicMs() - lane.awaySinceMs;
    const ended = this.hear({ kind: "away", tenant, why: lane.awayWhy, awayMs });
    // Other actors may now have memory for jobs.
    if (ended.length > 0) this.options.onChange(this);
  }

  isReady(): boolean {
    if (this.waitingJobs === 0 || this.state.delivering >= engineLimits.tenantWindowMax) return false;
    if (!this.options.mayDeliver()) return false;
    const tenant = this.lookUp();
    if (tenant === undefined || !this.steer(tenant)) return false;
    const { next: job } = this;
    if (job === undefined) return false;
    // Its relay may have become prompt, or lost that status, or the tenant may have another relay now.
    const place = this.chooseScheduler(tenant);
    if (place !== this.place) {
      this.moveTo(place);
      return false;
    }
    const left = this.left(tenant);
    const planMs = this.pace.waitMs(this.options.clock.monotonicMs(), this.findPace(tenant));
    const actions = this.hear({ kind: "offered", left, isOld: this.isOld(job), planMs });
    if (!actions.some(({ kind }) => kind === "start")) return false;
    // Last: checking the channel's pace reserves a turn for the tenant, which it should then be able to use.
    if (tenant !== null && this.isThrottled(tenant)) return false;
    this.chosen = { tenant, isLimited: left < Number.POSITIVE_INFINITY };
    return true;
  }

  /** In deliveries per second; null: unlimited. */
  private findPace(tenant: Tenant | null): number | null {
    return tenant === null ? null : paceFor(tenant, this.tenantQueue.channel);
  }

  startNext(): void {
    const { next: job, chosen } = this;
    if (job === undefined || chosen === null) return;
    const { tenant, isLimited } = chosen;
    const { lane } = this.way;
    this.become({ waiting: this.state.waiting.slice(1), delivering: this.state.delivering + 1 });
    const slot = lane === null ? null : lane.begin(this, this.place !== lane);
    this.pace.take(this.options.clock.monotonicMs(), this.findPace(tenant));
    const unit = isLimited ? this.options.allowances.take(this.tenantQueue) : null;
    this.options.start({ job, tenant, unit, slot, isOld: this.isOld(job) });
    if (this.planPull() !== null) this.options.onChange(this);
  }

  /** The reason why its jobs wait, as of its last check. */
  get waits(): QueueWait {
    const { hold } = this.state;
    const { lane } = this.way;
    if (hold.kind === "paused") return "paused";
    if (lane !== null && lane.awaySinceMs !== null) return "away";
    if (hold.kind === "day_spent") return "warm_up";
    return "untilMs" in hold && hold.untilMs > this.options.clock.monotonicMs() ? "pace" : "turn";
  }

  /** Returns the same in the terms of `explain`, with the time until then. */
  whyWaits(): OwnersAnswer {
    const { clock } = this.options;
    const { waits, state, way } = this;
    if (waits === "away" && way.lane !== null) return way.lane.whyAway();
    if (waits === "warm_up") return { waitsFor: "warm_up", forMs: untilNextUtcDayMs(clock.nowMs()) };
    if (waits !== "pace" || !("untilMs" in state.hold))
      return { waitsFor: waits === "paused" ? waits : "turn", forMs: null };
    return { waitsFor: state.hold.kind, forMs: Math.ceil(state.hold.untilMs - clock.monotonicMs()) };
  }

  tenantLoaded(tenant: Tenant | null): void {
    this.loadRetries.reset();
    this.loaded = tenant;
    this.lookAgain();
    this.loaded = undefined;
  }

  tenantAway(): void {
    // The registry is away: jobs wait in their tenant queue, and no attempt is counted.
    this.lookIn(this.loadRetries.nextMs());
  }

  private get isClosed(): boolean {
    return this.state.phase.kind === "closed";
  }

  /** Decides about the event and acts. Returns the actions. */
  private hear(event: ActorEvent): readonly Action[] {
    const { clock } = this.options;
    const { change, actions } = decide(this.state, event, { unixMs: clock.nowMs(), monotonicMs: clock.monotonicMs() });
    this.become(change);
    for (const action of actions) this.act(action);
    return actions;
  }

  private become(change: Partial<ActorState>): void {
    if (change.openBytes !== undefined) this.options.backlog.add(change.openBytes - this.state.openBytes);
    Object.assign(this.state, change);
  }

  private act(action: Action): void {
    switch (action.kind) {
      case "end":
        return this.options.start({ job: action.job, tenant: null, unit: null, slot: null, isOld: false });
      case "give_up":
        return this.options.giveUp(action.settlement, this.isOld(action.settlement.job));
      case "leave":
        this.leave();
        return this.lookIn(action.forMs);
      case "wait":
        return this.lookIn(action.forMs);
      // The caller continues with these.
      case "read":
      case "start":
    }
  }

  private leave(): void {
    this.place?.withdraw(this);
    this.place = null;
  }

  private moveTo(place: FairScheduler | RelayLane): void {
    if (place !== this.place) this.leave();
    this.place = place;
    place.contend(this);
  }

  /** Returns the scheduler or lane in which the tenant's jobs wait for their turn. */
  private chooseScheduler(tenant: Tenant | null): FairScheduler | RelayLane {
    const { slots } = this.options;
    if (tenant !== this.way.tenant) this.way = { tenant, lane: tenant === null ? null : slots.getLane(tenant) };
    const { lane } = this.way;
    return lane === null || lane.takesPromptly(this) ? slots.prompt : lane;
  }

  /**
   * Returns the tenant (null: it is gone), or undefined while the lookup is in flight; the actor contends again
   * afterwards.
   */
  private lookUp(): Tenant | null | undefined {
    return this.loaded === undefined ? this.options.lookups.find(this.tenantQueue.tenantId, this) : this.loaded;
  }

  private lookIn(delayMs: number): void {
    this.time.waitsSinceMs = null;
    this.alarm?.cancel();
    this.alarm = this.options.clock.setTimer(Math.ceil(delayMs), () => this.lookAgain());
  }

  /** Decides again: the tenant, the actor's turn or another day may have come. */
  private lookAgain(): void {
    if (this.isClosed) return;
    this.contend();
    this.options.onChange(this);
  }

  /** Carries out operators' decisions about the tenant's jobs. False: no job may start. */
  private steer(tenant: Tenant | null): boolean {
    const mayEnd = this.waitingJobs > 0 && this.options.mayDeliver();
    this.hear({ kind: "found", tenant, channel: this.tenantQueue.channel, mayEnd });
    return !this.isPaused;
  }

  private isOld(job: QueuedJob): boolean {
    const askedMs = this.askedMs.get(job);
    return askedMs === undefined || this.options.clock.monotonicMs() - askedMs > engineLimits.lookAgainMs;
  }

  /**
   * Returns how many deliveries the day's allowance still permits, including those of the jobs that wait here. Also 0
   * until the allowance is known.
   */
  private left(tenant: Tenant | null): number {
    const { tenantQueue, allowances, clock } = this.options;
    const day = utcDayAt(clock.nowMs());
    const perDay = tenant === null ? null : dailyAllowance(tenant, tenantQueue.channel, day);
    if (perDay === null) return Number.POSITIVE_INFINITY;
    return allowances.left({ tenantQueue, day, perDay }, () => this.lookAgain());
  }
}
