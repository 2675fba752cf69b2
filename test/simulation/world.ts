import type { DeliveryReport } from "../../src/domain/jobs/report.ts";
import { limits } from "../../src/domain/limits.ts";
import type { TenantRef } from "../../src/domain/tenants/tenant.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import { InstantQueue } from "../support/memory-redis/instant-queue.ts";
import type { Snapshot } from "../support/memory-redis/keyspace.ts";
import { createHazard } from "./calamities.ts";
import { Dice } from "./dice.ts";
import { FairnessChecker } from "./fairness-checker.ts";
import { JobChecker, type JobTruth } from "./job-checker.ts";
import { LeaseChecker } from "./lease-checker.ts";
import { Load } from "./load.ts";
import { Network, QUEUE_CALL_MS_MAX, QUEUE_LINES, type Server } from "./network.ts";
import { Outages } from "./outages.ts";
import { Watch } from "./promises.ts";
import { Provider } from "./provider.ts";
import { QueueChecker } from "./queue-checker.ts";
import { PLATFORM, Relays } from "./relays.ts";
import type { RunOptions } from "./run-options.ts";
import { SimClock } from "./sim-clock.ts";
import { SimCluster } from "./sim-cluster.ts";
import { SimEventStore } from "./sim-event-store.ts";
import { SimOperator } from "./sim-operator.ts";
import { EPOCH_MS, SimProcess } from "./sim-process.ts";
import { Trace } from "./trace.ts";
import { WaitChecker } from "./wait-checker.ts";
import { type ReportCounts, WatchedQueue } from "./watched-queue.ts";
import { CALM } from "./weather.ts";
import { WebhookCalls } from "./webhook-calls.ts";

/** The events of a world, which show whether it was put to the test. */
export interface WorldCounts extends ReportCounts {
  crashes: number;
  pauses: number;
  drains: number;
  restarts: number;
  silences: number;
  halfOpen: number;
  /** Steps of the queue's clock. */
  clockSteps: number;
  reports: number;
}

/** The engine's processes, the services that they call, and the checkers that know the truth. */
export class World {
  readonly dice: Dice;
  readonly clock: SimClock;
  readonly trace: Trace;
  readonly watch = new Watch();
  readonly network: Network;
  readonly state: InstantQueue;
  readonly jobs: JobChecker;
  readonly leases: LeaseChecker;
  readonly eventStore: SimEventStore;
  readonly fairness: FairnessChecker;
  readonly provider: Provider;
  readonly operator: SimOperator;
  readonly relays: Relays;
  readonly waits: WaitChecker;
  readonly queueChecker: QueueChecker;
  readonly queue: WatchedQueue;
  readonly load: Load;
  private readonly webhookCalls: WebhookCalls;
  private readonly outages: Outages;
  readonly queueServer: Server = { name: "queue", isUp: true, timeoutMs: QUEUE_CALL_MS_MAX };
  readonly eventStoreServer: Server = { name: "event store", isUp: true, timeoutMs: limits.eventStoreInsertTimeoutMs };
  readonly counts: WorldCounts = {
    crashes: 0,
    pauses: 0,
    drains: 0,
    restarts: 0,
    silences: 0,
    halfOpen: 0,
    clockSteps: 0,
    reports: 0,
    reportsKept: 0,
    endedByReport: 0,
    retries: 0,
  };
  /** The processes that play, one a place. A place is empty between a death and the next start. */
  readonly places: (SimCluster | null)[];
  /** Processes that were told to stop and have not. */
  readonly leaving = new Set<SimCluster>();
  /** Reports on their way, with the process that has taken each, if any. */
  private readonly reports = new Set<{ house: SimCluster | null }>();
  private births = 0;
  private queueSkewMs = 0;

  constructor(seed: number, draw: (dice: Dice) => RunOptions) {
    this.dice = new Dice(seed);
    this.drawn = draw(this.dice);
    const { weather, slots, tenants, slownessMs, callsBack, healthy, heavy } = this.drawn;
    const { dice, watch } = this;
    this.clock = new SimClock(dice.fork());
    this.tenants = new Map(tenants.map((tenant) => [tenant.tenantId, tenant]));
    this.operator = new SimOperator(this.clock, watch, this.tenants);
    this.trace = new Trace(this.clock);
    this.network = new Network(this.clock, dice.fork(), this.trace);
    this.network.weather = weather;
    this.state = new InstantQueue(() => EPOCH_MS + this.clock.nowMs + this.queueSkewMs, dice.fork());
    const isClockSound = !weather.queueForgets || weather.queueClockStepEveryMs === 0;
    const isAgeKnown = weather.clockStepEveryMs === 0 && weather.clockFarAhead === 0;
    const read = (tenant: TenantRef, jobId: string) => this.state.jobNow(tenant, jobId);
    const landed = (truth: JobTruth) => (truth.isScheduled ? undefined : this.waits.accepted(truth));
    const ended = (truth: JobTruth) => this.ended(truth);
    const unnoticedStepsMs = (shard: number) => this.queueChecker.unnoticedStepsMs(shard);
    const forwardStepsMs = () => this.queueChecker.forwardMs;
    const isPurged = ({ tenant, acceptedMs }: JobTruth) => this.operator.isPurged(tenant.tenantId, acceptedMs);
    const aboutJobs = { read, isClockSound, isAgeKnown, unnoticedStepsMs, forwardStepsMs, landed, ended, isPurged };
    this.jobs = new JobChecker(this.clock, watch, aboutJobs);
    const soundRelays = new Set([...healthy].map((tenantId) => this.drawn.relays.get(tenantId) ?? PLATFORM));
    this.relays = new Relays(this.clock, dice.fork(), this.drawn.relays, soundRelays);
    this.waits = new WaitChecker(this.clock, watch, healthy, waitBoundMs(this.drawn));
    this.outages = new Outages(this.clock, this.queueServer);
    this.leases = new LeaseChecker(this.clock, watch, this.outages);
    this.eventStore = new SimEventStore(watch, (row) => this.jobs.hasEvent(row), isClockSound);
    this.fairness = new FairnessChecker(this.clock, watch, slots, this.drawn.hasRelays, isComparable(this.drawn));
    this.queueChecker = new QueueChecker({
      clock: this.clock,
      watch,
      jobs: this.jobs,
      state: this.state,
      lateMs: lateMs(this.drawn),
      queueAheadMs: () => this.queueSkewMs,
      bothBehindMs: () => this.bothBehindMs(),
    });
    const { network, state, jobs, leases, eventStore, fairness, queueChecker, clock, trace } = this;
    this.queue = new WatchedQueue({
      state,
      watch,
      jobs,
      leases,
      eventStore,
      fairness,
      queueChecker,
      counts: this.counts,
    });
    this.provider = new Provider({
      clock,
      dice: dice.fork(),
      network,
      trace,
      watch,
      jobs,
      leases,
      fairness,
      state,
      slots,
      callsBack,
      isOrdered: weather.isCalm,
      patientSlots: this.drawn.patientSlots,
      relayConnections: this.drawn.relayConnections ?? Number.POSITIVE_INFINITY,
      hasRelays: this.drawn.hasRelays,
      relays: this.relays,
      waits: this.waits,
      operator: this.operator,
      queueChecker,
      healthy,
      isQueueSound: !weather.queueForgets,
      // A story tells its faults by itself.
      isQueueNear: healthy.size > 0,
      slownessMs: (tenantId) => slownessMs.get(tenantId) ?? 60,
      report: (report, delayMs) => this.report(report, delayMs),
    });
    this.webhookCalls = new WebhookCalls({
      clock,
      dice: dice.fork(),
      watch,
      aHouse: () => this.aHouse(),
      truthOf: (jobId) => jobs.jobs.get(jobId),
      called: () => {
        this.counts.reports += 1;
      },
    });
    this.load = new Load({
      clock,
      dice: dice.fork(),
      network,
      heavy,
      aHouse: () => this.aHouse(),
      acknowledged: (jobId) => this.acknowledged(jobId),
    });
    this.places = Array.from({ length: this.drawn.processes }, () => null);
  }

  readonly drawn: RunOptions;
  private readonly tenants: Map<string, RunOptions["tenants"][number]>;

  /** One step of the world, with all that follows from it. Returns false when no work is left. */
  step(): boolean {
    const went = this.clock.step();
    this.fairness.stepped();
    this.waits.stepped();
    return went;
  }

  /** A process starts at this place. */
  start(place: number): SimCluster {
    this.births += 1;
    const process = new SimProcess(`p${this.births}`, this.clock, this.dice.fork());
    const isFarAhead = this.dice.chance(this.network.weather.clockFarAhead);
    const aheadMs = this.dice.pick([HOUR_MS, 365 * 24 * HOUR_MS]);
    if (isFarAhead) process.skewMs = aheadMs;
    const { network, watch, queue, queueServer, eventStore, eventStoreServer, provider, tenants } = this;
    const around = { network, watch, queue, queueServer, eventStore, eventStoreServer, provider, tenants };
    const { shards, shardsPerRecord } = this.drawn;
    const house = new SimCluster(process, { ...around, shards, shardsPerRecord }, this.dice.fork());
    process.hazard = createHazard(process, {
      dice: this.dice,
      now: () => this.network.weather,
      crash: () => this.crash(place),
      paused: () => (this.counts.pauses += 1),
    });
    this.places[place] = house;
    this.trace.note("start", process.name);
    house.start();
    return house;
  }

  /** The process dies, and another takes its place after a while. */
  crash(place: number): void {
    const house = this.places[place];
    if (house === undefined || house === null) return;
    this.counts.crashes += 1;
    this.trace.note("crash", house.process.name);
    house.process.crash();
    this.places[place] = null;
    this.startLater(place);
  }

  /** Stops the process, and kills it if that takes too long. */
  drain(place: number): void {
    const house = this.places[place];
    if (house === undefined || house === null || !house.process.isRunning) return;
    // Where somebody must not wait, somebody is there.
    const isAlone = this.places.every((other) => other === null || other === house);
    if (isAlone && this.drawn.healthy.size > 0) return;
    this.counts.drains += 1;
    this.trace.note("drain", house.process.name);
    this.places[place] = null;
    this.leaving.add(house);
    house.process.enter(() => void this.stop(house).then(() => this.leaving.delete(house)), "answer");
    this.clock.at(15_000, () => {
      house.process.crash();
      this.leaving.delete(house);
    });
    this.startLater(place);
  }

  /** Resolves when the process has stopped by itself. */
  async stop(house: SimCluster): Promise<void> {
    house.process.isToldToStop = true;
    house.process.clock.setTimer(limits.drainMs, () => this.leases.abandonTerms(house.process));
    await house.stop();
  }

  /** Faults end: everything is up, everybody is awake, and each place has its process. */
  heal(): void {
    this.trace.note("heal");
    // Lost hints and refused messages are no faults.
    const { lostHint, bytesPerMs, tenantLoadMs, jobRetried } = this.drawn.weather;
    const refusals = { providerPermanent: jobRetried > 0 ? 0.5 : 0 };
    this.network.weather = { ...CALM, ...refusals, report: 0, lostHint, bytesPerMs, tenantLoadMs };
    this.network.endSilences();
    this.outages.end();
    this.relays.heal();
    this.operator.end();
    this.places.forEach((house, place) => {
      if (house === null) this.start(place);
      else house.process.resume();
    });
  }

  /** Whether a report is on its way that is not lost with its process. */
  get hasReportsInFlight(): boolean {
    if (this.webhookCalls.inFlight > 0) return true;
    return Array.from(this.reports).some(({ house }) => house === null || this.places.includes(house));
  }

  private bothBehindMs(): number {
    const skews = this.places.flatMap((place) => (place === null ? [] : [place.process.skewMs]));
    return Math.max(0, ...skews.map((ms) => Math.min(-ms, -this.queueSkewMs)));
  }

  stepQueueClock(byMs: number): void {
    // Redis removes by and by what has expired: a clock that is set back does not bring it back.
    this.state.server.keys.expire();
    this.queueSkewMs += byMs;
    this.queueChecker.clockStepped(byMs);
    this.counts.clockSteps += 1;
  }

  /** The queue comes back in a former state: later events may happen again. */
  forgetSince(snapshot: Snapshot): void {
    this.trace.note("forget");
    this.state.restore(snapshot);
    this.queue.forgetKeys();
    this.queueChecker.forget();
    this.leases.rewind((shard, role) => this.state.leaseNow(shard, role));
    const shards = Array.from({ length: this.drawn.shards }, (_, shard) => this.state.look(shard));
    this.jobs.rewind(shards.flatMap(({ suppressed }) => suppressed));
    for (const { tenantId, eventId } of shards.flatMap(({ outbox }) => outbox))
      this.eventStore.excused.add(`${tenantId}#${eventId}`);
    for (const key of this.jobs.forgottenEvents) this.eventStore.excused.add(key);
  }

  /** The queue is not heard of, by one process or by all. */
  silence(forMs: number, isForAll: boolean): void {
    const house = isForAll ? null : this.aHouse();
    this.counts.silences += 1;
    if (isForAll) this.outages.silent(forMs);
    this.network.silence(this.queueServer, house?.process ?? null, forMs);
  }

  /** One of a process's connections to the queue is dead for so long. */
  breakHalf(forMs: number): void {
    const house = this.aHouse();
    if (house === null) return;
    this.counts.halfOpen += 1;
    this.network.breakHalf(this.queueServer, house.process, { line: this.dice.pick(QUEUE_LINES), forMs });
  }

  /** No process remembers its tenants. */
  changePlan(): void {
    for (const house of this.places) house?.directory.forgetAll();
  }

  setQueueUp(isUp: boolean): void {
    if (!isUp) this.counts.restarts += 1;
    this.queueServer.isUp = isUp;
    this.outages.look();
  }

  private ended(truth: JobTruth): void {
    this.waits.handedOver(truth.jobId);
    this.operator.ended(truth);
  }

  private startLater(place: number): void {
    this.clock.at(this.dice.between(100, 5_000), () => {
      if (this.places[place] === null) this.start(place);
    });
  }

  aHouse(dice = this.dice): SimCluster | null {
    const running = this.places.filter((house) => house !== null && !house.process.isDead);
    return running.length === 0 ? null : dice.pick(running);
  }

  private acknowledged(jobId: string): void {
    const truth = this.jobs.jobs.get(jobId);
    this.watch.demand(truth !== undefined, "nothingLost", () => `${jobId} was acknowledged and never queued`);
  }

  /** On its way to some process. */
  report(report: DeliveryReport, delayMs: number): void {
    if (this.drawn.callsBack) return this.webhookCalls.send(report, delayMs);
    const arrival: { house: SimCluster | null } = { house: null };
    this.reports.add(arrival);
    this.clock.at(delayMs, () => {
      const house = this.aHouse();
      arrival.house = house;
      if (house === null) {
        this.reports.delete(arrival);
        return;
      }
      this.counts.reports += 1;
      house.process.enter(() => {
        void this.take(house, report).then(() => this.reports.delete(arrival));
      }, "answer");
    });
  }

  private async take(house: SimCluster, report: DeliveryReport): Promise<void> {
    await house.reports.take(report);
    const truth = this.jobs.jobs.get(report.jobId);
    if (truth === undefined || truth.isExcused || !this.places.includes(house)) return;
    const isKept = truth.types.has(report.type) || truth.everTold.has(report.type);
    this.watch.demand(isKept, "reportKept", () => `${report.jobId}: ${report.type}`);
  }
}

/**
 * How long a message of a well-behaved tenant may wait from its acceptance to its first hand-over, where the queue, the
 * wire and the clocks are sound: README derives it.
 */
function waitBoundMs({ weather, shards, processes }: RunOptions): number {
  const { lostHint, drainEveryMs, tenantLoadMs, bytesPerMs } = weather;
  const hintMs = lostHint > 0 ? engineLimits.idlePollMs : 0;
  const pullMs = bytesPerMs > 0 ? (shards * PULL_BYTES) / bytesPerMs : 0;
  // A shard also moves when the processes share them at their start.
  const moves = drainEveryMs > 0 || (processes > 1 && lostHint > 0);
  const moveMs = moves ? limits.leaseCompeteMs : 0;
  return hintMs + 2 * pullMs + 4 * tenantLoadMs + moveMs + SLOT_MS;
}

/** The latest that a retry may come where only the queue's clock has faults; null: where there are others. */
function lateMs(options: RunOptions): number | null {
  const { healthy, weather } = options;
  return healthy.size === 0 || weather.drainEveryMs > 0 ? null : waitBoundMs(options);
}

const PULL_BYTES = 1024 * 1024;
/** For a slot that is taken by prompt deliveries, and the legs of the calls. */
const SLOT_MS = 500;
const HOUR_MS = 3_600_000;

/** Whether only the scheduler can make a tenant wait. */
function isComparable({ weather, processes, tenants }: RunOptions): boolean {
  const isUnpaced = tenants.every(({ plan }) => plan.deliveriesPerSecond === null);
  return weather.isCalm && processes === 1 && isUnpaced && weather.tenantPauseEveryMs === 0;
}
