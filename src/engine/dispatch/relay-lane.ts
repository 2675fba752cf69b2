import type { Relay } from "../../domain/channels/channel.ts";
import type { Clock, Timer } from "../../domain/clock.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { OwnersAnswer } from "../../domain/jobs/job-questions.ts";
import type { Random } from "../../domain/random.ts";
import type { Contender, FairScheduler } from "./fair-scheduler.ts";
import { RelayBreaker, type Verdict } from "./relay-breaker.ts";
import { type Room, SlotTurns } from "./slot-turns.ts";

/** A relay is prompt if its last answered delivery took less time. */
export const PROMPT_MS = 1_000;
/** Deliveries in flight at one time on a relay that has not answered yet: a tenant's own relay, and a shared one. */
const FIRST_WINDOW = { own: 8, shared: 256 } as const;
/** Each answer allows one more, up to this many. */
const WINDOW_MAX = 512;
/** For a relay that only one tenant uses, or that takes any number of deliveries: its actors need not share. */
const AMPLE: Room = { size: Number.MAX_SAFE_INTEGER, free: Number.MAX_SAFE_INTEGER };
const FULL: Room = { size: 0, free: 0 };
/**
 * Lanes take turns regardless of how long their messages take: lanes with waiting actors are limited by their windows.
 */
const LANES_TIME = { used: Number.NEGATIVE_INFINITY, isShort: true, isLong: false };
/**
 * A relay that is away and without jobs for this long is forgotten, because no delivery would discover that it is back.
 */
const UNUSED_MS_MAX = 5 * 60_000;

/** An actor from a lane's point of view. */
export interface Waiter extends Contender {
  /** The job that it would start next. */
  readonly next: QueuedJob | undefined;
  readonly waitingJobs: number;
  /** Queues for a turn again, in the lane or pool where its jobs now wait. */
  contend(): void;
  /** Moves the first job that satisfies the predicate to the front. */
  prefer(isBetter: (job: QueuedJob) => boolean): void;
  /** Checks whether jobs have been held for too long because the lane's relay is away, or now have another relay. */
  reviewHeld(lane: RelayLane): void;
}

/** A delivery's slot. */
export interface Slot {
  readonly lane: RelayLane;
  readonly waiter: Waiter;
  /** Monotonic. */
  readonly startedAtMs: number;
  /** When the message was handed to the relay (monotonic); null: it is still being checked, or its content fetched. */
  handedOverAtMs: number | null;
  kind: "prompt" | "patient" | "probe";
  /** Whether the delivery has contacted its relay; false until it reports so. */
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
 * R1. While its breaker is open no delivery starts; while it is half-open, one probe.
 * R2. A relay that has not proven prompt has at most its window in flight on patient slots: a few at first, one more
 *     with each answer. While many slots are in use, a tenant's own relay has one until it answers: a thousand hanging
 *     relays still leave slots for untried ones.
 * R3. Tenants that share a relay get the slots of its window by the turns of `SlotTurns`, all their deliveries counted.
 * R4. On all slots together a relay has at most `relayConnections` deliveries in flight, shared by the same turns: no
 *     delivery waits for a connection first come, first served.
 * R5. Only the time after the hand-over counts as the relay's time.
 * R6. A probe that ends without contacting the relay passes its turn to the next job at once. Its own job has ended or
 *     returns through the queue, so each job takes the turn once.
 */
export class RelayLane implements Contender {
  /** Deliveries on patient slots. */
  inFlight = 0;
  /** Answers about messages so far. */
  answers = 0;
  /** When it went away (monotonic), or null. */
  awaySinceMs: number | null = null;
  /** The latest reason why it is away, as tenants may read it. */
  awayWhy = "";
  /** Deliveries on slots of all kinds. */
  private busy = 0;
  private readonly breaker = new RelayBreaker();
  readonly time = { ...LANES_TIME, waitsSinceMs: null };
  private readonly turns: SlotTurns<Waiter>;
  private readonly firstWindow: number;
  private readonly windowMax: number;
  private window: number;
  private wasPrompt = false;
  private usedAtMs = 0;
  private alarm: Timer | null = null;
  private chosen: Waiter | null = null;
  private isStartingProbe = false;
  private readonly prober: Contender = {
    time: { ...LANES_TIME, waitsSinceMs: null },
    isReady: () => this.breaker.mayProbe && this.choose(this.hasConnection ? AMPLE : FULL),
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
    const { relayConnections, clock } = pools;
    this.turns = new SlotTurns(clock, () => this.wake());
    this.firstWindow = Math.min(relay.isOwn ? FIRST_WINDOW.own : FIRST_WINDOW.shared, relayConnections);
    this.windowMax = Math.min(WINDOW_MAX, relayConnections);
    this.window = this.firstWindow;
  }

  /**
   * Whether the actor contends for a prompt slot: the relay is prompt and may take another of the actor's deliveries.
   */
  takesPromptly(waiter: Waiter): boolean {
    return this.isPrompt && this.turns.may(waiter, this.connections);
  }

  get isAway(): boolean {
    return !this.breaker.isClosed;
  }

  /** Returns why its jobs wait while it is away. */
  whyAway(): OwnersAnswer {
    return { waitsFor: "relay_away", forMs: null, why: this.awayWhy };
  }

  /** The breaker's state while the relay is away. */
  get awayState(): "open" | "half_open" {
    return this.breaker.isHalfOpen ? "half_open" : "open";
  }

  /** Whether no job waits for the relay or is with it, and no state about it has to be kept. */
  get isIdle(): boolean {
    return this.breaker.isClosed && this.turns.isEmpty && this.busy === 0;
  }

  /** The actors whose jobs wait for the relay. */
  get waiting(): Iterable<Waiter> {
    return this.turns.waiting;
  }

  contend(waiter: Waiter): void {
    this.turns.add(waiter);
    this.usedAtMs = this.pools.clock.monotonicMs();
    const job = waiter.next;
    if (this.breaker.isOnlySilent && job !== undefined && !this.breaker.hasStruck(job)) this.breaker.halfOpen();
    this.wake();
  }

  withdraw(waiter: Waiter): void {
    this.turns.delete(waiter);
  }

  isReady(): boolean {
    const { patient, unprovenSlots } = this.pools;
    const isProven = !this.relay.isOwn || (this.answers > 0 && !this.breaker.isStruck);
    const window = isProven || patient.slotsUsed < unprovenSlots ? this.window : 1;
    return this.breaker.isClosed && this.inFlight < window && this.choose(this.patientRoom);
  }

  startNext(): void {
    this.startChosen();
  }

  /** Creates the slot of the delivery that the actor is starting. */
  begin(waiter: Waiter, isPrompt: boolean): Slot {
    const kind = isPrompt ? "prompt" : this.isStartingProbe ? "probe" : "patient";
    const startedAtMs = this.pools.clock.monotonicMs();
    const slot: Slot = { lane: this, waiter, startedAtMs, handedOverAtMs: null, kind, hasAsked: false };
    this.turns.takes(waiter, kind === "probe" ? AMPLE : isPrompt ? this.connections : this.patientRoom);
    this.busy += 1;
    if (kind === "prompt") {
      this.pools.promptSlots.add(slot);
      this.pools.onStarted();
    } else if (kind === "patient") this.inFlight += 1;
    return slot;
  }

  /** Records that the message is handed to the relay. */
  handOver(slot: Slot): void {
    slot.handedOverAtMs ??= this.pools.clock.monotonicMs();
  }

  /** Records the delivery's verdict. The slot stays taken until `end`. */
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

  /** Frees the slot of a delivery that is over. */
  end(slot: Slot): void {
    const { prompt, patient, probes, promptSlots } = this.pools;
    this.busy -= 1;
    this.turns.gaveBack(slot.waiter);
    if (slot.kind === "prompt") {
      promptSlots.delete(slot);
      // Before actors that wait for prompt slots take the connection.
      this.wake();
      prompt.release(slot.waiter);
    } else if (slot.kind === "patient") {
      this.inFlight -= 1;
      patient.release(this);
    } else {
      this.breaker.endProbe();
      if (!slot.hasAsked) this.breaker.halfOpen();
      else if (!this.breaker.isClosed) this.probeLater();
      probes.release(this.prober);
    }
    this.wake();
  }

  /**
   * Moves a long delivery to a patient slot, if one is free, which frees its prompt slot. The relay may then no longer
   * be prompt.
   */
  moveToPatience(slot: Slot): void {
    const { prompt, patient, promptSlots } = this.pools;
    if (this.hasLasted(slot)) this.wasPrompt = false;
    if (!patient.take(this)) return;
    promptSlots.delete(slot);
    slot.kind = "patient";
    this.inFlight += 1;
    prompt.release(slot.waiter);
  }

  /** Forgets that the relay is away if it has no more jobs: another process may own its tenants' shards by now. */
  forgetIfUnused(): void {
    if (!this.turns.isEmpty || this.pools.clock.monotonicMs() - this.usedAtMs < UNUSED_MS_MAX) return;
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

  private get hasConnection(): boolean {
    return this.busy < this.pools.relayConnections;
  }

  private get connections(): Room {
    if (!this.hasConnection) return FULL;
    const { relayConnections: size } = this.pools;
    return this.relay.isOwn || size === Number.POSITIVE_INFINITY ? AMPLE : { size, free: size - this.busy };
  }

  /** The capacity of the window on patient slots, and of the connections. */
  private get patientRoom(): Room {
    if (this.relay.isOwn) return this.connections;
    const free = Math.min(this.connections.free, this.window - this.inFlight);
    return { size: Math.min(this.pools.relayConnections, this.window), free };
  }

  /** Whether the relay has had the delivery for a long time. */
  private hasLasted({ handedOverAtMs }: Slot): boolean {
    return handedOverAtMs !== null && this.pools.clock.monotonicMs() - handedOverAtMs >= PROMPT_MS;
  }

  /** Lets its actors contend for prompt slots themselves, as far as connections permit. */
  private release(): void {
    for (let next = this.turns.next(this.connections); next !== null; next = this.turns.next(this.connections)) {
      this.turns.delete(next);
      next.contend();
    }
  }

  private wake(): void {
    if (this.turns.isEmpty) return;
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
   * Returns whether an actor has a delivery that may start: the next in turn. A probe prefers a job that has not struck
   * before.
   */
  private choose(room: Room): boolean {
    const isBetter = (job: QueuedJob) => !this.breaker.hasStruck(job);
    const isGood = (waiter: Waiter) => {
      waiter.prefer(isBetter);
      return waiter.next === undefined || isBetter(waiter.next);
    };
    this.chosen = null;
    for (;;) {
      const next = (this.breaker.isStruck ? this.turns.next(room, isGood) : null) ?? this.turns.next(room);
      if (next === null) return false;
      if (next.isReady()) {
        this.chosen = next;
        return true;
      }
      this.turns.delete(next);
    }
  }

  private startChosen(): void {
    const waiter = this.chosen;
    this.chosen = null;
    waiter?.startNext();
  }
}
