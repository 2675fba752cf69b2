import type { Channel } from "../../domain/channels/channel.ts";
import type { Timer } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import type { ChannelName, EndReason, QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import { FENCED, type JobNews, type OwnerQueue, type Settlement } from "../../domain/jobs/queue.ts";
import { limits } from "../../domain/limits.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { Tracer } from "../../domain/tracing.ts";
import type { LeaseTerm } from "../leases/lease-term.ts";
import { engineLimits } from "../limits.ts";
import type { ChannelSlots } from "./channel-slots.ts";
import type { AllowanceUnit } from "./daily-allowances.ts";
import { deliver, screen } from "./deliver.ts";
import type { FallbackTurns } from "./fallback-turns.ts";
import { giveBack } from "./give-back.ts";
import { gaveUpHeld, heldUntilMs, waitAlone } from "./held-jobs.ts";
import type { JobNotes } from "./job-notes.ts";
import { SettlementTraces } from "./job-traces.ts";
import { judgeRelay } from "./relay-breaker.ts";
import type { Slot } from "./relay-lane.ts";
import { toSettlement } from "./settlement.ts";
import { Settler } from "./settler.ts";

export interface DeliveriesPorts extends RuntimePorts {
  readonly queue: OwnerQueue;
  readonly channels: ReadonlyMap<ChannelName, Channel>;
  readonly slots: ReadonlyMap<ChannelName, ChannelSlots>;
  readonly notes: Pick<JobNotes, "landed" | "retried">;
  readonly fallbacks: Pick<FallbackTurns, "turn">;
  /** Absent: tracing is off. */
  readonly tracer?: Tracer;
}

/** A delivery as its actor starts it. */
export interface Started {
  readonly job: QueuedJob;
  readonly tenant: Tenant | null;
  /** The unit that it takes from the day's allowance; null: its tenant has no daily limit, or no message is sent. */
  readonly unit: AllowanceUnit | null;
  /** Null: its tenant has no relay that could be away or slow as a whole. */
  readonly slot: Slot | null;
  /** Its pull was so long ago that the job is looked up again before it is sent. */
  readonly isOld: boolean;
}

/** A job that is looked up again, and its allowance unit. */
type Old = Pick<Started, "job" | "unit">;

/** Starts deliveries and is notified when they end. */
export interface Starter {
  /** Called when the delivery is over; its slot, occupied for `heldMs`, is free. */
  delivered(slot: Slot | null, heldMs: number): void;
  /**
   * Called when the relay is away: the job waits again, ahead of the tenant's other jobs, or behind them if it was a
   * probe.
   */
  hold(job: QueuedJob, wasProbe: boolean): void;
  /** Whether a delivery that has its slot may still begin: the term has not ended, and the tenant is not paused. */
  mayGoOn(): boolean;
  /**
   * Whether the channel's pace delays the tenant. Others of its deliveries may have begun since this one got its slot.
   */
  isThrottled(tenant: Tenant): boolean;
  /** Called when the queue did not answer whether a job may still be sent: old ones wait for a moment. */
  askLater(): void;
}

export interface DeliveryEvents {
  /** Returns the shard's time as the owner estimates it. */
  shardTimeMs(): number | null;
  /** Called when the outcomes are on disk. */
  onLanded(settlements: readonly Settlement[]): void;
  /** Called when another owner has the lease. */
  onFenced(): void;
}

type Away = Extract<Outcome, { kind: "away" }>;

/**
 * The deliveries of one lease term, from their start until their outcomes are on disk.
 *
 * V1. When the term closes, the jobs in flight are lent: each leaves its tenant queue, and the next owner (which may be
 *     this process) skips it. It returns by itself if no outcome follows, and if its loan is not prolonged while its
 *     delivery lasts. The lease can then be released; the outcomes follow under the old lease's name.
 * V2. No provider call begins once the jobs are lent.
 * V3. No job is recorded as failed before its channel has given back the resources that its acceptance took, and only
 *     while no other owner can have the job.
 * V4. An old job is neither sent nor given up before the queue has confirmed that its recipient is not suppressed. If
 *     the queue does not answer, the job waits.
 */
export class Deliveries {
  private readonly inFlight = new Map<QueuedJob, AbortController>();
  private readonly settler: Settler;
  private readonly lentSettler: Settler;
  /**
   * Prolongs loans, separately from outcomes: in one call a job has one of the two. Whichever lands first, the outcome
   * stands.
   */
  private readonly loans: Settler;
  private readonly traces: SettlementTraces;
  /** Aborts when the deliveries in flight must end, finished or not. */
  private readonly ended = new AbortController();
  private isLent = false;
  private lentUntilMs = 0;
  private loanEnd: Timer | null = null;
  private prolonging: Timer | null = null;
  /** Resolves when the lends are on disk, or never will be. */
  private lending: Promise<void> = Promise.resolve();
  private hasLent = false;
  private allEnded: (() => void)[] = [];

  constructor(
    private readonly ports: DeliveriesPorts,
    private readonly term: LeaseTerm,
    { onLanded, onFenced, shardTimeMs }: DeliveryEvents,
  ) {
    const { queue, clock, random, telemetry, notes } = ports;
    const { lease } = term;
    const send = (settlements: readonly Settlement[]) => queue.settle(lease, settlements, shardTimeMs());
    this.traces = new SettlementTraces(ports.tracer);
    const landed = (settlements: readonly Settlement[], reported: ReadonlySet<string>) => {
      notes.landed(settlements, reported);
      this.traces.landed(settlements);
    };
    const landedAsOwner = (settlements: readonly Settlement[], reported: ReadonlySet<string>) => {
      landed(settlements, reported);
      onLanded(settlements);
    };
    this.settler = new Settler({ send, clock, random, telemetry, onLanded: landedAsOwner, onFenced });
    const sendLent = async (settlements: readonly Settlement[]) => {
      await this.lending;
      await queue.settleLent(lease, settlements, shardTimeMs());
      return "settled" as const;
    };
    const lent = { send: sendLent, clock, random, telemetry, onFenced: () => {} };
    this.lentSettler = new Settler({ ...lent, onLanded: landed });
    this.loans = new Settler({ ...lent, onLanded: () => {} });
  }

  /** Never rejects: `deliver` always ends in an outcome. */
  async start(starter: Starter, started: Started): Promise<void> {
    const { job, tenant, slot } = started;
    if (job.isReported) return this.submit(retryNow(job, "running"));
    const aborter = new AbortController();
    const begunMs = this.ports.clock.monotonicMs();
    const heldMs = () => this.ports.clock.monotonicMs() - begunMs;
    this.inFlight.set(job, aborter);
    if (job.suppressed !== null) {
      await this.settle(job, suppressedBy(job.suppressed, job));
      return this.leave(job);
    }
    if ((started.isOld && (await this.isOvertaken(started, starter))) || (await this.isUnneeded(started))) {
      this.leave(job);
      return starter.delivered(slot, heldMs());
    }
    const refused = job.needsScreening ? await screen(this.ports, job, tenant, aborter) : null;
    if (refused === null) await this.deliverAndSettle(starter, started, aborter);
    else {
      started.unit?.giveBack();
      if (refused.kind === "away") this.submit(retryNow(job, "pending", engineLimits.jobRetry.firstMs));
      else await this.settle(job, refused, { wasStarted: false });
    }
    this.leave(job);
    starter.delivered(slot, heldMs());
  }

  /** Whether a delivery of the job is in flight. */
  has(jobId: string): boolean {
    for (const job of this.inFlight.keys()) if (job.jobId === jobId) return true;
    return false;
  }

  /** Ends a job that its relay has delayed for too long. */
  async giveUp(settlement: Settlement, isOld: boolean): Promise<void> {
    const { job } = settlement;
    this.inFlight.set(job, new AbortController());
    if (!(isOld && (await this.isOvertaken({ job, unit: null })))) await this.settleUnsent(settlement);
    this.leave(job);
  }

  /** Lends all jobs in flight. Resolves when the lends and all outcomes so far are on disk, or never will be. */
  lend(forMs: number): Promise<void> {
    if (this.isLent) return this.lending;
    this.isLent = true;
    const { clock } = this.ports;
    this.lentUntilMs = clock.monotonicMs() + forMs - limits.leaseMarginMs;
    // From then on another owner may have the jobs: giving back for them must end.
    this.loanEnd = clock.setTimer(forMs, () => this.ended.abort());
    for (const job of this.inFlight.keys()) this.settler.submit({ kind: "lend", job, forMs });
    this.prolongLater(forMs);
    this.lending = this.settler.idle().then(() => {
      this.hasLent = !this.settler.isAbandoned;
    });
    return this.lending;
  }

  /**
   * Lends for a short time and prolongs: if this process dies, its jobs return soon, however long their channel's
   * deliveries may last.
   */
  private prolongLater(forMs: number): void {
    if (this.inFlight.size === 0) return;
    this.prolonging = this.ports.clock.setTimer(forMs / 2, () => {
      for (const job of this.inFlight.keys()) {
        const { deliveryMsMax = 0 } = this.ports.channels.get(job.channel) ?? {};
        if (deliveryMsMax > limits.deliveryTimeoutMs) this.loans.submit({ kind: "lend", job, forMs });
      }
      this.prolongLater(forMs);
    });
  }

  /** Aborts the provider calls in flight; the outcomes are still settled. */
  abort(): void {
    this.ended.abort();
    for (const aborter of this.inFlight.values()) aborter.abort();
  }

  /** Ends everything at once, without further waits or writes. */
  abandon(): void {
    this.abort();
    this.settler.abandon();
    this.lentSettler.abandon();
    this.loans.abandon();
    this.prolonging?.cancel();
    this.inFlight.clear();
    this.noteAllEnded();
  }

  /** Resolves when no delivery is in flight and all outcomes are on disk. */
  async over(): Promise<void> {
    if (this.inFlight.size > 0) await new Promise<void>((resolve) => this.allEnded.push(resolve));
    await this.settler.idle();
    await this.lentSettler.idle();
    this.loans.abandon();
    this.loanEnd?.cancel();
    this.prolonging?.cancel();
  }

  private leave(job: QueuedJob): void {
    this.inFlight.delete(job);
    this.noteAllEnded();
  }

  private noteAllEnded(): void {
    if (this.inFlight.size === 0 && this.allEnded.length > 0) for (const resolve of this.allEnded.splice(0)) resolve();
  }

  /** Whether the job ends because of a change since its pull, or its state is unknown; either is settled here. */
  private async isOvertaken({ job, unit }: Old, starter?: Starter): Promise<boolean> {
    const news = await this.lookAgain(job);
    const isSuppressed = news !== null && news.suppressed !== null;
    // The term may have ended meanwhile, or the tenant be paused.
    const mayGoOn = !this.isLent && this.term.isSurelyHeld() && starter?.mayGoOn() !== false;
    if (news !== null && !isSuppressed && !news.isReported && mayGoOn) return false;
    unit?.giveBack();
    // Because the job itself carries the suppression, its settlement keeps an erased recipient out of the history.
    if (isSuppressed) await this.settle({ ...job, ...news }, suppressedBy(news.suppressed, news));
    else if (starter === undefined || this.isLent || news?.isReported) {
      this.submit(retryNow(job, unsentStatus(job), news === null ? engineLimits.jobRetry.firstMs : 0));
    } else {
      // The job keeps its position: settled, it would return behind all jobs that were accepted since.
      if (news === null) starter.askLater();
      starter.hold(job, false);
    }
    return true;
  }

  /** Null: the queue did not answer. */
  private async lookAgain(job: QueuedJob): Promise<JobNews | null> {
    const { queue, telemetry } = this.ports;
    try {
      const news = await queue.lookAgain(this.term.lease, job);
      return news === FENCED ? null : news;
    } catch (error) {
      telemetry.count("queue_calls_failed", { call: "look" });
      const level = isOutage(error) ? "debug" : "error";
      telemetry.log(level, "a job waits until it can be looked up again", { job: job.jobId, error: String(error) });
      return null;
    }
  }

  /** Whether it is a fallback that is not sent, or not yet; either is settled here. */
  private async isUnneeded({ job, tenant, unit }: Started): Promise<boolean> {
    if (job.fallback === undefined || tenant === null) return false;
    const turn = await this.ports.fallbacks.turn(job, job.fallback, tenant);
    // The term may have ended meanwhile.
    const mayGoOn = !this.isLent && this.term.isSurelyHeld();
    if (turn.kind === "send" && mayGoOn) return false;
    unit?.giveBack();
    if (turn.kind === "end") await this.settle(job, { kind: "suppressed", reason: turn.reason });
    else this.submit(retryNow(job, "pending", turn.kind === "wait" ? turn.ms : 0));
    return true;
  }

  private async deliverAndSettle(starter: Starter, started: Started, aborter: AbortController): Promise<void> {
    const { job, tenant, unit, slot } = started;
    // No await may come between this check and the channel's call, which uses the turn.
    if (tenant !== null && !this.isLent && starter.isThrottled(tenant)) {
      unit?.giveBack();
      return starter.hold(job, false);
    }
    if (job.needsScreening) {
      // The term may have ended while the content was checked.
      if (this.isLent || !this.term.isSurelyHeld()) {
        unit?.giveBack();
        return this.submit(retryNow(job, "pending"));
      }
      this.settler.submit({ kind: "start", job });
    }
    const onHandOver = () => slot?.lane.handOver(slot);
    const provider = nameProvider(slot);
    const beganMs = this.ports.clock.monotonicMs();
    const outcome = await deliver(this.ports, job, tenant, { aborter, provider, onHandOver });
    const ms = this.ports.clock.monotonicMs() - beganMs;
    const verdict = judgeRelay(outcome, aborter.signal.aborted);
    if (slot !== null && "why" in outcome && (verdict === "away" || verdict === "silence"))
      slot.lane.awayWhy = outcome.why;
    slot?.lane.judge(slot, verdict, job);
    const isUnsent = outcome.kind === "away" || (outcome.kind === "retry" && (outcome.isUncounted || outcome.isUnsent));
    if (isUnsent) unit?.giveBack();
    if (outcome.kind === "away") await this.putAside(starter, started, outcome);
    else await this.settle(job, outcome, { ms });
  }

  /** Returns a job whose relay is away; the message itself was not judged. */
  private async putAside(starter: Starter, { job, tenant, slot }: Started, { why }: Away): Promise<void> {
    const { slots, random, clock } = this.ports;
    if (this.isLent) return this.submit(retryNow(job, "running", engineLimits.jobRetry.firstMs));
    const lane = slot?.lane ?? null;
    const place = lane === null ? "wait" : slots.get(job.channel)?.placeOfAway(lane, job);
    if (place === "hold") return starter.hold(job, slot?.kind === "probe");
    if (place === "count") return this.settle(job, { kind: "retry", why, isUnsent: true });
    if (tenant !== null && lane === null && clock.nowMs() >= heldUntilMs(job, tenant)) {
      return this.settleUnsent(gaveUpHeld(job, why, tenant.plan.holdMs));
    }
    this.submit(waitAlone(job, random));
  }

  private async settle(
    job: QueuedJob,
    outcome: Exclude<Outcome, Away>,
    { wasStarted = true, ...took }: { readonly wasStarted?: boolean; readonly ms?: number } = {},
  ): Promise<void> {
    const { channels, clock, random, notes } = this.ports;
    if (outcome.kind === "retry") notes.retried(job, outcome);
    const reportsNameReference = channels.get(job.channel)?.reportsNameReference === true;
    const settlement = toSettlement({ job, outcome, wasStarted, reportsNameReference, ...took }, clock, random);
    if (settlement.kind === "final" && isUnsent(settlement)) await this.settleUnsent(settlement);
    else this.submit(settlement);
  }

  private async settleUnsent(settlement: Settlement): Promise<void> {
    const { job } = settlement;
    const giving = { ended: this.ended.signal, isSurelyHeld: () => this.isSurelyOurs() };
    if (await giveBack(this.ports, job, giving)) this.submit(settlement);
    // Its next owner gives back and records the failure. Return the job at once; a loan would end only later.
    else if (this.isLent) this.submit(retryNow(job, "running"));
  }

  private isSurelyOurs(): boolean {
    if (!this.isLent) return this.term.isSurelyHeld();
    return this.hasLent && this.ports.clock.monotonicMs() < this.lentUntilMs;
  }

  private submit(settlement: Settlement): void {
    this.traces.begins(settlement);
    (this.isLent ? this.lentSettler : this.settler).submit(settlement);
  }
}

/**
 * Returns the relay's label. There can be as many tenant-owned relays as tenants, so these share one name; "none": the
 * channel names no relay.
 */
function nameProvider(slot: Slot | null): string {
  if (slot === null) return "none";
  return slot.lane.relay.isOwn ? "own" : slot.lane.relay.name;
}

/**
 * Builds an uncounted wait of zero length. If a report waits with the job, the queue turns this into a success; if the
 * queue has lost the report, it is a retry.
 */
function retryNow(job: QueuedJob, status: "running" | "pending", delayMs = 0): Settlement {
  return { kind: "retry", job, delayMs, status, isUncounted: true };
}

/**
 * Returns the tenant-visible status of a job that was pulled and not sent: running, unless a check had to come first.
 */
function unsentStatus({ needsScreening, fallback }: QueuedJob): "running" | "pending" {
  return needsScreening || fallback !== undefined ? "pending" : "running";
}

/** Whether the job certainly ends without a message: the resources that its acceptance took are given back first. */
function isUnsent({ status, isGivenUp }: Extract<Settlement, { kind: "final" }>): boolean {
  // A report that waits with a cancelled job can turn its end into a success.
  return status === "failed" || (status === "suppressed" && isGivenUp !== true);
}

function suppressedBy(
  reason: EndReason,
  { suppressedTopic: topic }: JobNews,
): Extract<Outcome, { kind: "suppressed" }> {
  return { kind: "suppressed", reason, ...(topic !== undefined && { topic }) };
}
