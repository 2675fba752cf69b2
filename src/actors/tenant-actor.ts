import type { Clock, Timer } from "../core/clock.ts";
import type { QueuedJob } from "../core/job.ts";
import type { Mailbox, MailboxPull } from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import type { Tenant, TenantDirectory } from "../core/tenant.ts";
import { dailyAllowance, untilNextUtcDayMs, utcDayAt } from "../core/warm-up.ts";
import type { AllowanceUnit, DailyAllowances, DayAllowance } from "./daily-allowances.ts";
import type { Contender, FairScheduler } from "./fair-scheduler.ts";
import { Pacer } from "./pacer.ts";

export interface TenantActorOptions {
  readonly box: Mailbox;
  readonly directory: TenantDirectory;
  readonly scheduler: FairScheduler;
  readonly allowances: DailyAllowances;
  readonly clock: Clock;
  /** Whether a delivery may start: the lease is surely held and the term is not closing. */
  mayDeliver(): boolean;
  /** Milliseconds until the tenant's sender may be used again, as its channel has it (`Channel.paceMs`). */
  paceMs(tenant: Tenant): number;
  /** Delivers and settles the job, and gives the unit of the day's allowance back where nothing was sent. */
  start(job: QueuedJob, tenant: Tenant | null, unit: AllowanceUnit | null): void;
  /** The actor may have become hungry or idle. */
  onChange(actor: TenantActor): void;
}

/**
 * A tenant with mail on a channel: its waiting jobs, its window of deliveries and its pace, for as long as it has
 * something to do in one lease term. A tenant's channels have an actor each, so that none waits for another.
 *
 * T1. `open` jobs are waiting, being delivered or being settled; each stays in the box until it is settled.
 * T2. Entries are read in order and once: behind `lastRead` while jobs are open, from the start when none are (then the
 *     box holds nothing that was read, and a new stream may begin with smaller ids).
 * T3. At most `tenantWindowMax` deliveries are under way, and no faster than the plan and the provider say.
 * T4. No more is read than today's allowance leaves to start: what is over stays in the box, pending, for days if need be.
 */
export class TenantActor implements Contender {
  inFlight = 0;
  private waiting: QueuedJob[] = [];
  private waitingBytes = 0;
  private open = 0;
  private lastRead: string | null = null;
  private boxMayHaveMore = true;
  private hasBegunAnew = false;
  private isPulling = false;
  private readonly pacer = new Pacer();
  private isLoading = false;
  private isClosed = false;
  private alarm: Timer | null = null;
  /** The tenant as the next delivery will see it, and its day; set by `nextCost` for `startNext`. */
  private tenant: Tenant | null = null;
  private allowance: DayAllowance | null = null;

  constructor(private readonly options: TenantActorOptions) {}

  get box(): Mailbox {
    return this.options.box;
  }

  get backlogBytes(): number {
    return this.waitingBytes;
  }

  get isHungry(): boolean {
    return this.room() > 0;
  }

  /** Nothing open, nothing to read, and no past delivery that the pace still remembers. */
  get isIdle(): boolean {
    if (this.open > 0 || this.boxMayHaveMore || this.isPulling) return false;
    return this.pacer.settledInMs(this.options.clock.monotonicMs()) === 0;
  }

  /** The journal says that the box has entries that nobody has read. */
  hasMail(): void {
    this.boxMayHaveMore = true;
  }

  /** What to ask the box for. `frugal`: the process holds as much as it may. Null: nothing now. */
  beginPull(frugal: boolean): MailboxPull | null {
    const room = this.room();
    if (room <= 0 || (frugal && this.open > 0)) return null;
    this.isPulling = true;
    return { box: this.box, after: this.open > 0 ? this.lastRead : null, entriesMax: frugal ? 1 : room };
  }

  /** `isNamed`: the journal named the box as one with mail in this very call. */
  endPull(jobs: readonly QueuedJob[], { more, isNamed }: { readonly more: boolean; readonly isNamed: boolean }): void {
    this.isPulling = false;
    this.boxMayHaveMore = more;
    // All that was read is settled in the journal, and the box has begun anew, perhaps with ids that were used before.
    this.hasBegunAnew = isNamed && jobs.length === 0;
    this.open += jobs.length;
    for (const job of jobs) {
      this.lastRead = job.entryId;
      if (job.suppressed !== null || job.isReported) this.options.start(job, null, null);
      else {
        this.waiting.push(job);
        this.waitingBytes += job.payload.length;
      }
    }
    if (this.waiting.length > 0) this.options.scheduler.contend(this);
  }

  /** The call got no answer: what it read stays unread. */
  failPull(): void {
    this.isPulling = false;
  }

  /** A delivery is over; its slot is free. */
  delivered(): void {
    this.inFlight -= 1;
    this.options.scheduler.release();
    if (this.waiting.length > 0) this.options.scheduler.contend(this);
  }

  /** A job's outcome is on disk. */
  settled(): void {
    this.open -= 1;
    if (this.open === 0 && this.hasBegunAnew) {
      this.hasBegunAnew = false;
      this.boxMayHaveMore = true;
    }
    if (this.open === 0 && !this.boxMayHaveMore) this.wakeWhenPaceIsForgotten();
    this.options.onChange(this);
  }

  /** The term is over for what has not started. */
  close(): void {
    this.isClosed = true;
    this.alarm?.cancel();
    this.alarm = null;
    this.waiting = [];
    this.waitingBytes = 0;
    this.options.scheduler.withdraw(this);
  }

  nextCost(): number | null {
    const job = this.waiting[0];
    if (job === undefined || this.inFlight >= limits.tenantWindowMax || !this.options.mayDeliver()) return null;
    const tenant = this.lookUp();
    if (tenant === undefined) return null;
    const allowance = this.allowanceOf(tenant);
    if (this.mayStart(allowance) === 0) return null;
    // The plan's pace first: asking the channel keeps a turn for the tenant, which it should then be able to use.
    const planMs = this.pacer.waitMs(this.options.clock.monotonicMs(), paceOf(tenant));
    const waitMs = planMs > 0 || tenant === null ? planMs : this.options.paceMs(tenant);
    if (waitMs > 0) {
      this.contendIn(waitMs);
      return null;
    }
    this.tenant = tenant;
    this.allowance = allowance;
    return deliveryCost(job);
  }

  startNext(): void {
    const job = this.waiting.shift();
    if (job === undefined) return;
    this.waitingBytes -= job.payload.length;
    this.inFlight += 1;
    this.pacer.take(this.options.clock.monotonicMs(), paceOf(this.tenant));
    this.options.start(job, this.tenant, this.allowance && this.options.allowances.take(this.box));
    if (this.isHungry) this.options.onChange(this);
  }

  /** The tenant (null: it is gone), or undefined while it is being looked up; the actor contends again after that. */
  private lookUp(): Tenant | null | undefined {
    if (this.isLoading) return undefined;
    const found = this.options.directory.byId(this.box.tenantId);
    if (!(found instanceof Promise)) return found;
    this.isLoading = true;
    found.then(
      () => {
        this.isLoading = false;
        this.lookAgain();
      },
      () => {
        // The registry is away: jobs wait in the box, this costs them no attempt.
        this.isLoading = false;
        this.contendIn(limits.tenantRetryMs);
      },
    );
    return undefined;
  }

  private contendIn(delayMs: number): void {
    this.alarm?.cancel();
    this.alarm = this.options.clock.setTimer(Math.ceil(delayMs), () => {
      this.alarm = null;
      this.lookAgain();
    });
  }

  /** What the actor waited for may have come: its tenant, its turn, or another day. */
  private lookAgain(): void {
    if (this.isClosed) return;
    if (this.waiting.length > 0) this.options.scheduler.contend(this);
    this.options.onChange(this);
  }

  /** How many entries may be read now. */
  private room(): number {
    if (!this.boxMayHaveMore || this.isPulling || this.waiting.length >= limits.refillEntries) return 0;
    const openRoom = limits.boxOpenMax - this.open;
    const tenant = openRoom > 0 ? this.lookUp() : undefined;
    if (tenant === undefined) return 0;
    const startRoom = this.mayStart(this.allowanceOf(tenant)) - this.waiting.length;
    return Math.min(limits.pullEntriesPerBoxMax, openRoom, startRoom);
  }

  private allowanceOf(tenant: Tenant | null): DayAllowance | null {
    const day = utcDayAt(this.options.clock.nowMs());
    const perDay = tenant === null ? null : dailyAllowance(tenant, this.box.channel, day);
    return perDay === null ? null : { box: this.box, day, perDay };
  }

  /** Deliveries that the day leaves to start, also of those that wait here. 0 also while that is being found out. */
  private mayStart(allowance: DayAllowance | null): number {
    if (allowance === null) return Number.POSITIVE_INFINITY;
    const left = this.options.allowances.left(allowance, () => this.lookAgain());
    const untilTomorrowMs = untilNextUtcDayMs(this.options.clock.nowMs());
    if (left === 0) this.contendIn(Math.min(untilTomorrowMs, limits.allowanceLookMs));
    return left;
  }

  private wakeWhenPaceIsForgotten(): void {
    const waitMs = this.pacer.settledInMs(this.options.clock.monotonicMs());
    if (waitMs === 0) return;
    this.alarm?.cancel();
    this.alarm = this.options.clock.setTimer(Math.ceil(waitMs), () => this.options.onChange(this));
  }
}

function paceOf(tenant: Tenant | null): number | null {
  return tenant === null ? null : tenant.plan.deliveriesPerSecond;
}

/** A turn's worth of work is counted in pieces of 16 KiB: a long message costs its tenant more turns than a short one. */
function deliveryCost(job: QueuedJob): number {
  return 1 + Math.floor(job.payload.length / 16_384);
}
