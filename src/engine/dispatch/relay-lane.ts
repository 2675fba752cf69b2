import type { Relay } from "../../domain/channel.ts";
import type { Clock, Timer } from "../../domain/clock.ts";
import type { QueuedJob } from "../../domain/job.ts";
import type { Random } from "../../domain/random.ts";
import type { Contender, FairScheduler } from "./fair-scheduler.ts";
import { RelayBreaker, type Verdict } from "./relay-breaker.ts";

/** A relay is prompt if its last answered delivery took less. */
export const PROMPT_MS = 1_000;
/**
 * Deliveries in flight at one time on a relay that has not answered yet: a tenant's own, and one that tenants share.
 */
const FIRST_WINDOW = { own: 8, shared: 256 } as const;
/** Each answer allows one more, up to this many. */
const WINDOW_MAX = 512;
/**
 * A relay that is away and without jobs for this long is forgotten, because no delivery would notice that it is back.
 */
const UNUSED_MS_MAX = 5 * 60_000;

/** An actor, as a lane knows it. */
export interface Waiter extends Contender {
  inFlight: number;
  /** Its deliveries on all slots. */
  readonly delivering: number;
  /** The job that it would start next. */
  readonly next: QueuedJob | undefined;
  readonly waitingJobs: number;
  /** Queues for a turn again, in the place where its jobs now wait. */
  contend(): void;
  /** Moves the first job that satisfies the predicate to the front. */
  prefer(isBetter: (job: QueuedJob) => boolean): void;
  /**
   * Checks whether the lane's relay, which is away, has held jobs for too long, or whether they now have another way.
   */
  reviewHeld(lane: RelayLane): void;
}

/** A delivery's slot. */
export interface Slot {
  readonly lane: RelayLane;
  readonly waiter: Waiter;
  /** Monotonic. */
  readonly startedAtMs: number;
  /** When the delivery turned to the relay (monotonic); null: the message is still checked, or its content fetched. */
  handedOverAtMs: number | null;
  kind: "prompt" | "patient" | "probe";
  /** Whether the delivery has asked its relay; false until it says so. */
  hasAsked: boolean;
}

export interface LanePools {
  readonly prompt: FairScheduler;
  readonly patient: FairScheduler;
  /** From this many patient slots in use, a relay that has not answered gets no second slot. */
  readonly unprovenSlots: number;
  readonly probes: FairScheduler;
  /** Deliveries that a relay can have in flight at one time. */
  readonly relayConnections: number;
  /** Deliveries on prompt slots, in the order of their start. */
  readonly promptSlots: Set<Slot>;
  readonly clock: Clock;
  readonly random: Random;
  onOpened(lane: RelayLane): void;
  onClosed(lane: RelayLane): void;
  onStarted(): void;
}

/**
 * The way to one relay: whether it is away or prompt, and the actors whose jobs wait while it is not prompt. While it
 * is prompt, its actors contend for the channel's prompt slots themselves; otherwise the lane contends for patient
 * slots on their behalf, and hands them to its actors in turn.
 *
 * R1. While its breaker is open nothing starts; while it is half-open, one probe.
 * R2. A relay that has not proven prompt has at most its window in flight on patient slots: a few at first, one more
 *     with each answer. While many slots are in use, a tenant's own relay has one until it answers: a thousand hanging
 *     relays still leave room for untried ones.
 * R3. A tenant with deliveries in flight gets another slot of the lane only while it holds fewer than twice the free
 *     part of three quarters of the window: one tenant's hanging messages cannot use up the window of a shared relay.
 * R4. On all slots together a relay has at most `relayConnections` deliveries in flight, shared by the same rule: no
 *     delivery waits for a connection first come, first served.
 * R5. Only the time after the hand-over counts as the relay's time.
 * R6. A probe that ends without asking the relay leaves its turn to the next job, at once. Its own job has ended or comes
 *     back through the queue, so each takes the turn once.
 */
export class RelayLane implements Contender {
  /** On patient slots. */
  inFlight = 0;
  /** Answers about messages so far. */
  answers = 0;
  /** When it went away (monotonic), or null. */
  awaySinceMs: number | null = null;
  /** Its last message while it was away. */
  awayWhy = "";
  /** On slots of all kinds. */
  private busy = 0;
  private readonly breaker = new RelayBreaker();
  private readonly waiters = new Set<Waiter>();
  private readonly firstWindow: number;
  private readonly windowMax: number;
  private window: number;
  private wasPrompt = false;
  private usedAtMs = 0;
  private alarm: Timer | null = null;
  private chosen: Waiter | null = null;
  private isStartingProbe = false;
  private readonly prober: Contender = {
    inFlight: 0,
    nextCost: () => (this.breaker.mayProbe ? this.choose() : null),
    startNext: () => {
      this.breaker.beginProbe();
      this.isStartingProbe = true;
      this.startChosen();
      this.isStartingProbe = false;
    },
  };

  constructor(
    readonly relay: Relay,
    private readonly pools: LanePools,
  ) {
    const { relayConnections } = pools;
    this.firstWindow = Math.min(relay.isOwn ? FIRST_WINDOW.own : FIRST_WINDOW.shared, relayConnections);
    this.windowMax = Math.min(WINDOW_MAX, relayConnections);
    this.window = this.firstWindow;
  }

  /**
   * Whether the actor contends for a prompt slot: the relay is prompt and may take another of the actor's deliveries.
   */
  takesPromptly(waiter: Waiter): boolean {
    return this.isPrompt && this.mayTakeAnother(waiter, this.connectionsLeft);
  }

  get isAway(): boolean {
    return !this.breaker.isClosed;
  }

  /** Of a relay that is away. */
  get awayState(): "open" | "half_open" {
    return this.breaker.isHalfOpen ? "half_open" : "open";
  }

  /** Nothing waits for the relay or is with it, and nothing remembered about it matters. */
  get isIdle(): boolean {
    return this.breaker.isClosed && this.waiters.size === 0 && this.busy === 0;
  }

  /** The actors whose jobs wait for the relay. */
  get waiting(): Iterable<Waiter> {
    return this.waiters;
  }

  contend(waiter: Waiter): void {
    this.waiters.add(waiter);
    this.usedAtMs = this.pools.clock.monotonicMs();
    const job = waiter.next;
    if (this.breaker.isOnlySilent && job !== undefined && !this.breaker.hasStruck(job)) this.breaker.halfOpen();
    this.wake();
  }

  withdraw(waiter: Waiter): void {
    this.waiters.delete(waiter);
  }

  nextCost(): number | null {
    const { patient, unprovenSlots } = this.pools;
    const isProven = !this.relay.isOwn || (this.answers > 0 && !this.breaker.isStruck);
    const window = isProven || patient.slotsUsed < unprovenSlots ? this.window : 1;
    return this.breaker.isClosed && this.inFlight < window ? this.choose() : null;
  }

  startNext(): void {
    this.startChosen();
  }

  /** Creates the slot of the delivery that the actor is starting. */
  begin(waiter: Waiter, isPrompt: boolean): Slot {
    const kind = isPrompt ? "prompt" : this.isStartingProbe ? "probe" : "patient";
    const startedAtMs = this.pools.clock.monotonicMs();
    const slot: Slot = { lane: this, waiter, startedAtMs, handedOverAtMs: null, kind, hasAsked: false };
    this.busy += 1;
    if (kind === "prompt") {
      waiter.inFlight += 1;
      this.pools.promptSlots.add(slot);
      this.pools.onStarted();
    } else if (kind === "patient") this.inFlight += 1;
    return slot;
  }

  /** The delivery turns to its relay. */
  handOver(slot: Slot): void {
    slot.handedOverAtMs ??= this.pools.clock.monotonicMs();
  }

  /** Records what the delivery has shown. The slot stays taken until `end`. */
  judge(slot: Slot, verdict: Verdict, job: QueuedJob): void {
    const { clock, onOpened } = this.pools;
    slot.hasAsked = verdict !== "unasked";
    const change = this.breaker.judge(verdict, job, slot.kind === "probe");
    if (verdict === "answer") {
      this.answers += 1;
      this.window = Math.min(this.window + 1, this.windowMax);
      if (slot.handedOverAtMs !== null) this.wasPrompt = !this.hasLasted(slot);
    } else if (verdict === "away" || verdict === "silence") {
      this.window = Math.max(this.firstWindow, Math.floor(this.window / 2));
      this.wasPrompt = false;
    }
    if (change === "opened") {
      this.awaySinceMs = clock.monotonicMs();
      this.probeLater();
      onOpened(this);
    } else if (change === "closed") this.closed();
    if (this.isPrompt) this.release();
  }

  /** The delivery is over: its slot is free. */
  end(slot: Slot): void {
    const { prompt, patient, probes, promptSlots } = this.pools;
    this.busy -= 1;
    if (slot.kind === "prompt") {
      promptSlots.delete(slot);
      slot.waiter.inFlight -= 1;
      // Before actors that wait at the prompt slots take the connection.
      this.wake();
      prompt.release();
    } else if (slot.kind === "patient") {
      this.inFlight -= 1;
      patient.release();
    } else {
      this.breaker.endProbe();
      if (!slot.hasAsked) this.breaker.halfOpen();
      else if (!this.breaker.isClosed) this.probeLater();
      probes.release();
    }
    this.wake();
  }

  /**
   * The delivery takes long: if a patient slot is free, it frees its prompt slot. The relay may then no longer be
   * prompt.
   */
  moveToPatience(slot: Slot): void {
    const { prompt, patient, promptSlots } = this.pools;
    if (this.hasLasted(slot)) this.wasPrompt = false;
    if (!patient.take(this)) return;
    promptSlots.delete(slot);
    slot.kind = "patient";
    slot.waiter.inFlight -= 1;
    this.inFlight += 1;
    prompt.release();
  }

  /** Forgets that the relay is away if it has no jobs any more: another process may own its tenants' shards by now. */
  forgetIfUnused(): void {
    if (this.waiters.size > 0 || this.pools.clock.monotonicMs() - this.usedAtMs < UNUSED_MS_MAX) return;
    if (this.breaker.forget() === "closed") this.closed();
  }

  private closed(): void {
    this.awaySinceMs = null;
    this.alarm?.cancel();
    this.alarm = null;
    this.pools.onClosed(this);
  }

  private get isPrompt(): boolean {
    return this.wasPrompt && this.breaker.isClosed;
  }

  /** Connections left to tenants with deliveries in flight. */
  private get connectionsLeft(): number {
    return 0.75 * this.pools.relayConnections - this.busy;
  }

  /** Whether the relay has had the delivery for long. */
  private hasLasted({ handedOverAtMs }: Slot): boolean {
    return handedOverAtMs !== null && this.pools.clock.monotonicMs() - handedOverAtMs >= PROMPT_MS;
  }

  /** Lets its actors contend for prompt slots themselves, as far as connections allow. */
  private release(): void {
    for (const waiter of Array.from(this.waiters)) {
      if (this.busy >= this.pools.relayConnections) return;
      if (!this.takesPromptly(waiter)) continue;
      this.waiters.delete(waiter);
      waiter.contend();
    }
  }

  private wake(): void {
    if (this.waiters.size === 0) return;
    if (this.isPrompt) this.release();
    else if (this.breaker.isClosed) this.pools.patient.contend(this);
    else if (this.breaker.mayProbe) this.pools.probes.contend(this.prober);
  }

  private probeLater(): void {
    const { clock, random } = this.pools;
    this.alarm?.cancel();
    this.alarm = clock.setTimer(this.breaker.untilProbeMs(random), () => {
      this.alarm = null;
      this.breaker.halfOpen();
      this.wake();
    });
  }

  /**
   * The cost of the next delivery of the first actor that has one; a probe prefers a job that has not struck before.
   */
  private choose(): number | null {
    const isBetter = (job: QueuedJob) => !this.breaker.hasStruck(job);
    const isPicky = this.breaker.isStruck;
    let second: { readonly waiter: Waiter; readonly cost: number } | null = null;
    const windowLeft = 0.75 * this.window - this.inFlight;
    for (const waiter of this.waiters) {
      if (!this.mayTakeAnother(waiter, Math.min(windowLeft, this.connectionsLeft))) continue;
      if (isPicky) waiter.prefer(isBetter);
      const cost = waiter.nextCost();
      if (cost === null) this.waiters.delete(waiter);
      else if (isPicky && waiter.next !== undefined && !isBetter(waiter.next)) second ??= { waiter, cost };
      else {
        this.chosen = waiter;
        return cost;
      }
    }
    this.chosen = second?.waiter ?? null;
    return second?.cost ?? null;
  }

  /** `left`: what is left to tenants with deliveries in flight. */
  private mayTakeAnother({ delivering }: Waiter, left: number): boolean {
    if (this.busy >= this.pools.relayConnections) return false;
    return delivering === 0 || this.relay.isOwn || delivering < 2 * left;
  }

  private startChosen(): void {
    const waiter = this.chosen;
    if (waiter === null) return;
    this.chosen = null;
    // Behind the others, if it still waits.
    if (this.waiters.delete(waiter)) this.waiters.add(waiter);
    waiter.startNext();
  }
}
