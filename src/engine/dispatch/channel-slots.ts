import type { Channel } from "../../domain/channels/channel.ts";
import type { Timer } from "../../domain/clock.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { AwayRelay } from "../../domain/process-status.ts";
import { remember } from "../../domain/remember.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { FairScheduler } from "./fair-scheduler.ts";
import { type LanePools, PROMPT_MS, RelayLane, type Slot } from "./relay-lane.ts";
import { SlotTime } from "./slot-time.ts";

/** Deliveries in flight at one time on relays that are slow or still unknown. */
const PATIENT_SLOTS = 2_048;
/** From this share of them in use, a relay that has not answered gets no second one. */
const UNPROVEN_PART = 1 / 8;
/**
 * Concurrent probes of relays that are away, as a share of those slots. Probes and other deliveries never wait for each
 * other.
 */
const PROBE_SLOTS_PART = 0.5;
const SWEEP_MS = 1_000;
/** Held jobs are reviewed once per this many sweeps. */
const SWEEPS_PER_REVIEW = 5;
/** Unused relays for which the process remembers whether they are prompt. */
const LANES_MAX = 4_096;
/** Tenants whose slot time the process remembers, and for how long after their last delivery. */
const TIMES_MAX = 10_000;
const TIMES_KEPT_MS = 10 * 60_000;
/** Remembered jobs whose relay was reported away although it answered other jobs. */
const DISPUTED_JOBS_MAX = 10_000;
const DISPUTES_MAX = 3;
/** Relays listed as away. */
const AWAY_LISTED_MAX = 20;

export interface ChannelSlotsOptions extends RuntimePorts {
  readonly channel: Channel;
}

/**
 * A channel's slots in this process, and the relays behind them. A delivery takes one of the channel's own slots only
 * while its relay is prompt: a tenant that waits for a slow, unknown or unavailable relay takes no slots from others.
 *
 * C1. At most `channel.slots` deliveries are in flight on prompt relays (and for tenants without a relay). A delivery
 *     there lasts longer than `PROMPT_MS` and a sweep only when no patient slot is free.
 * C2. All three pools are shared by the rules of `FairScheduler`, and so are a shared relay's connections.
 * C3. A tenant's slot time outlives its actors, and is forgotten ten minutes after its last delivery, or when ten
 *     thousand others were looked up since.
 */
export class ChannelSlots {
  readonly prompt: FairScheduler;
  private readonly pools: LanePools;
  private readonly lanes = new Map<string, RelayLane>();
  private readonly awayLanes = new Set<RelayLane>();
  private readonly times = new Map<string, SlotTime>();
  private readonly disputed = new Map<string, { readonly answers: number; readonly times: number }>();
  private sweeper: Timer | null = null;
  private sweeps = 0;

  constructor(private readonly options: ChannelSlotsOptions) {
    const { channel, clock, random } = options;
    this.prompt = new FairScheduler(channel.slots, clock);
    const patientSlots = channel.patientSlots ?? PATIENT_SLOTS;
    this.pools = {
      prompt: this.prompt,
      patient: new FairScheduler(patientSlots, clock),
      unprovenSlots: Math.ceil(patientSlots * UNPROVEN_PART),
      probes: new FairScheduler(Math.ceil(patientSlots * PROBE_SLOTS_PART), clock),
      promptSlots: new Set<Slot>(),
      clock,
      random,
      relayConnections: channel.relayConnections ?? Number.POSITIVE_INFINITY,
      onOpened: (lane) => this.opened(lane),
      onClosed: (lane) => this.closed(lane),
      onStarted: () => this.sweepSoon(),
    };
  }

  /** Returns the tenant's lane to its relay; null: the tenant has no relay that could be away or slow as a whole. */
  getLane(tenant: Tenant): RelayLane | null {
    const relay = this.options.channel.findRelay?.(tenant) ?? null;
    if (relay === null) return null;
    const known = this.lanes.get(relay.key);
    if (known !== undefined) return known;
    if (this.lanes.size >= LANES_MAX) this.forgetIdle();
    const lane = new RelayLane(relay, this.pools);
    this.lanes.set(relay.key, lane);
    return lane;
  }

  getSlotTime(tenantId: string): SlotTime {
    const sinceMs = this.options.clock.monotonicMs() - TIMES_KEPT_MS;
    const [oldest] = this.times;
    if (oldest !== undefined && !oldest[1].spentSince(sinceMs)) this.times.delete(oldest[0]);
    const value = this.times.get(tenantId) ?? new SlotTime();
    remember(this.times, { key: tenantId, value, max: TIMES_MAX });
    return value;
  }

  /**
   * Decides about a job whose relay was reported away. "hold": until the relay is back. "wait": the job waits alone,
   * because one job's report is not enough. "count": as an attempt, because the relay has repeatedly answered other
   * jobs in the meantime; the problem is then the message, whatever the relay's reply says.
   */
  placeOfAway(lane: RelayLane, job: QueuedJob): "hold" | "wait" | "count" {
    if (lane.isAway) return "hold";
    const known = this.disputed.get(job.jobId);
    const isContradicted = known !== undefined && lane.answers > known.answers;
    const times = (known?.times ?? 0) + (isContradicted ? 1 : 0);
    if (times >= DISPUTES_MAX) return "count";
    remember(this.disputed, { key: job.jobId, value: { answers: lane.answers, times }, max: DISPUTED_JOBS_MAX });
    return "wait";
  }

  /** Returns the relays that are away, shared relays first. */
  away(): readonly AwayRelay[] {
    const { clock, channel } = this.options;
    const listed: AwayRelay[] = [];
    for (const isOwn of [false, true]) {
      for (const { relay, awaySinceMs, awayWhy: why, awayState: state, waiting } of this.awayLanes) {
        if (listed.length === AWAY_LISTED_MAX) return listed;
        if (relay.isOwn !== isOwn) continue;
        const forMs = clock.monotonicMs() - (awaySinceMs ?? clock.monotonicMs());
        let waitingJobs = 0;
        for (const waiter of waiting) waitingJobs += waiter.waitingJobs;
        listed.push({ channel: channel.name, relay: relay.name, isOwn, forMs, state, why, waitingJobs });
      }
    }
    return listed;
  }

  private opened(lane: RelayLane): void {
    this.awayLanes.add(lane);
    this.note(lane, lane.relay.isOwn ? "info" : "warn", "a relay is away, its jobs wait");
    this.sweepSoon();
  }

  private closed(lane: RelayLane): void {
    this.awayLanes.delete(lane);
    this.note(lane, "info", "a relay is back");
    if (this.awayLanes.size === 0) this.gaugeHeld(0);
  }

  /** There can be as many tenant-owned relays as tenants, so these share one label. */
  private note({ relay, awayWhy: why }: RelayLane, level: "warn" | "info", message: string): void {
    const { telemetry, channel } = this.options;
    telemetry.log(level, message, { channel: channel.name, relay: relay.name, isOwn: relay.isOwn, why });
    const isCounted = (other: RelayLane) =>
      relay.isOwn ? other.relay.isOwn : !other.relay.isOwn && other.relay.name === relay.name;
    let open = 0;
    for (const other of this.awayLanes) if (isCounted(other)) open += 1;
    telemetry.gauge("relay_open", open, { channel: channel.name, relay: relay.isOwn ? "own" : relay.name });
  }

  private gaugeHeld(jobs: number): void {
    this.options.telemetry.gauge("jobs_held", jobs, { channel: this.options.channel.name });
  }

  private sweepSoon(): void {
    this.sweeper ??= this.options.clock.setTimer(SWEEP_MS, () => {
      this.sweeper = null;
      this.sweep();
      if (this.pools.promptSlots.size > 0 || this.awayLanes.size > 0) this.sweepSoon();
    });
  }

  /** Moves long deliveries to patient slots, and ends jobs that were held for too long. */
  private sweep(): void {
    const slowFromMs = this.options.clock.monotonicMs() - PROMPT_MS;
    for (const slot of this.pools.promptSlots) {
      if (slot.startedAtMs > slowFromMs) break;
      slot.lane.moveToPatience(slot);
    }
    if (this.awayLanes.size === 0) return;
    this.sweeps += 1;
    const isReview = this.sweeps % SWEEPS_PER_REVIEW === 0;
    let held = 0;
    for (const lane of this.awayLanes) {
      for (const waiter of lane.waiting) {
        if (isReview) waiter.reviewHeld(lane);
        held += waiter.waitingJobs;
      }
      if (isReview) lane.forgetIfUnused();
    }
    this.gaugeHeld(held);
  }

  /** Checks only a few of the oldest lanes, which bounds the cost of a new relay. */
  private forgetIdle(): void {
    let looks = 16;
    for (const [key, lane] of this.lanes) {
      this.lanes.delete(key);
      if (!lane.isIdle) this.lanes.set(key, lane);
      looks -= 1;
      if (looks === 0) return;
    }
  }
}
