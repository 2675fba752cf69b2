import type { Channel } from "../../src/domain/channels/channel.ts";
import type { EventType } from "../../src/domain/jobs/event.ts";
import { isFinal, type QueuedJob } from "../../src/domain/jobs/job.ts";
import type { Outcome } from "../../src/domain/jobs/outcome.ts";
import type { DeliveryReport } from "../../src/domain/jobs/report.ts";
import { limits } from "../../src/domain/limits.ts";
import type { Tenant } from "../../src/domain/tenants/tenant.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import type { InstantQueue } from "../support/memory-redis/instant-queue.ts";
import type { Dice } from "./dice.ts";
import type { FairnessChecker } from "./fairness-checker.ts";
import type { JobChecker, JobTruth } from "./job-checker.ts";
import type { LeaseChecker, TermTruth } from "./lease-checker.ts";
import { type Network, QUEUE_CALL_MS_MAX } from "./network.ts";
import type { Watch } from "./promises.ts";
import type { QueueChecker } from "./queue-checker.ts";
import type { RelayState, Relays } from "./relays.ts";
import type { SimClock } from "./sim-clock.ts";
import type { SimOperator } from "./sim-operator.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Trace } from "./trace.ts";
import type { WaitChecker } from "./wait-checker.ts";

export interface ProviderParts {
  readonly clock: SimClock;
  readonly dice: Dice;
  readonly network: Network;
  readonly trace: Trace;
  readonly watch: Watch;
  readonly jobs: JobChecker;
  readonly leases: LeaseChecker;
  readonly fairness: FairnessChecker;
  readonly state: InstantQueue;
  readonly slots: number;
  readonly patientSlots: number;
  readonly relayConnections: number;
  readonly hasRelays: boolean;
  readonly relays: Relays;
  readonly waits: WaitChecker;
  readonly operator: SimOperator;
  readonly queueChecker: QueueChecker;
  /** It repeats a report until it is taken. */
  readonly callsBack: boolean;
  /** Without faults a tenant's messages come in their order. */
  readonly isOrdered: boolean;
  /** The queue never forgets: its leases are the truth. */
  readonly isQueueSound: boolean;
  /** The queue can always be reached. */
  readonly isQueueNear: boolean;
  /** Tenants whose messages are always taken. */
  readonly healthy: ReadonlySet<string>;
  /** How long a tenant's provider takes at most. */
  slownessMs(tenantId: string): number;
  report(report: DeliveryReport, delayMs: number): void;
}

/** A provider's treatment of a message. */
export type Behaviour =
  | "takes"
  | "takes silently"
  | "hangs"
  | "never hears"
  | "refuses"
  | "is busy"
  | "blocks"
  /** Its relay takes no connection, and says so at once, or not at all. */
  | "is away"
  | "is silent";

/** The time that a slow relay takes. */
const SLOW_MS = 10_000;
const DISPUTES_MAX = 3;
/** A job is looked up again once it is old, which takes a call and the pause of a process that may still deliver. */
const SUPPRESSED_MS_MAX = engineLimits.lookAgainMs + QUEUE_CALL_MS_MAX + limits.leaseTtlMs;
/** The time after which a caller gives up a silent relay. */
const SILENT_MS = 20_000;

/** The world's provider: takes messages, or not, and checks with each call that it may be made at all. */
export class Provider {
  /** Messages that were taken a second time, each after a fault that allows it. */
  repeats = 0;
  taken = 0;
  /** The behaviour of the provider that a story plots, instead of chance. */
  plot: (truth: JobTruth) => Behaviour | Outcome | null = () => null;
  /** How long a story has a message take, instead of chance. */
  delayMs: (truth: JobTruth) => number | null = () => null;
  private readonly inFlight = new Map<string, HandOver>();
  private readonly answers = new Map<string, number>();
  private readonly disputes = new Map<string, { readonly answers: number; readonly times: number }>();
  private readonly lastPlace = new Map<string, number>();

  constructor(private readonly parts: ProviderParts) {}

  /** Messages that some process is handing over. */
  get callsInFlight(): number {
    return this.inFlight.size;
  }

  createChannel(process: SimProcess): Channel {
    return {
      name: "email",
      slots: this.parts.slots,
      patientSlots: this.parts.patientSlots,
      relayConnections: this.parts.relayConnections,
      findRelay: (tenant) => (this.parts.hasRelays ? this.parts.relays.findRelay(tenant) : null),
      deliver: (job, tenant, signal) => this.deliver(process, job, tenant, signal),
    };
  }

  private deliver(process: SimProcess, job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    const { parts } = this;
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const truth = parts.jobs.jobs.get(job.jobId);
    const term = parts.leases.findTerm(process, tenant.shard, "dispatcher");
    parts.trace.note("deliver", process.name, job.jobId);
    parts.watch.demand(truth !== undefined, "nothingLost", () => `${job.jobId} was never accepted`);
    parts.watch.demand(term !== null, "leaseHeld", () => `${process.name} never held shard ${tenant.shard}`);
    if (truth === undefined || term === null) return promise;
    this.checkCall(process, job, truth, term);
    parts.operator.started(tenant.tenantId, job.jobId);
    parts.jobs.inHand(truth);
    parts.waits.handedOver(job.jobId);
    parts.queueChecker.begun(process, job.jobId);
    const { lease } = term;
    const isFallback = job.fallback !== undefined;
    parts.fairness.started(process, tenant, { jobId: job.jobId, token: lease.token, isFallback });
    const handOver = { term, signal, begunMs: parts.clock.nowMs };
    this.inFlight.set(job.jobId, handOver);
    truth.tries += 1;

    const life = truth.retries;
    let isOver = false;
    const end = (outcome: Outcome | null) => {
      if (isOver) return;
      isOver = true;
      parts.fairness.ended(process, tenant, { token: term.lease.token, tookMs: parts.clock.nowMs - handOver.begunMs });
      if (this.inFlight.get(job.jobId) === handOver) this.inFlight.delete(job.jobId);
      if (outcome === null) return;
      if (truth.retries === life && this.isOwners(truth, term)) parts.jobs.inHand(truth);
      if (truth.retries === life) this.hear(truth, term, { outcome, isAborted: signal.aborted });
      resolve(outcome);
    };
    signal.addEventListener("abort", () => this.checkAbort(job, handOver));
    this.runCall(process, truth, { signal, end });
    return promise;
  }

  /** A process hears an answer. */
  private hear(
    truth: JobTruth,
    term: TermTruth,
    { outcome, isAborted }: { readonly outcome: Outcome; readonly isAborted: boolean },
  ): void {
    if (outcome.kind === "delivered" && !isAborted) truth.answeredIn = term;
    if (outcome.kind === "failed") truth.isRefused = true;
    if (outcome.kind === "away") this.parts.queueChecker.waitsAgain(term.process, truth, term.lease.token);
    truth.lastHeard = outcome.kind === "away" ? "away" : "answered";
    // A try that reached no recipient is no attempt.
    const isNoTry =
      outcome.kind === "away" ? !this.isDisputed(truth, term) : outcome.kind === "retry" && outcome.isUncounted;
    if (isNoTry) truth.tries -= 1;
    if (outcome.kind !== "away") this.answers.set(this.formatWay(truth, term), this.countAnswers(truth, term) + 1);
  }

  /** A relay that was said to be away and answers others meanwhile, again and again, speaks of the message itself. */
  private isDisputed(truth: JobTruth, term: TermTruth): boolean {
    const key = `${term.process.name} ${truth.jobId}`;
    const known = this.disputes.get(key);
    const answers = this.countAnswers(truth, term);
    const times = (known?.times ?? 0) + (known !== undefined && answers > known.answers ? 1 : 0);
    this.disputes.set(key, { answers, times });
    return times >= DISPUTES_MAX;
  }

  /** The number of a relay's answers that a process has received. */
  private countAnswers(truth: JobTruth, term: TermTruth): number {
    return this.answers.get(this.formatWay(truth, term)) ?? 0;
  }

  private formatWay({ tenant }: JobTruth, { process }: TermTruth): string {
    return `${process.name} ${this.parts.relays.findRelay(tenant).key}`;
  }

  private runCall(process: SimProcess, truth: JobTruth, call: ProviderCall): void {
    const { dice, clock, network, slownessMs } = this.parts;
    const { signal, end } = call;
    const state = this.parts.relays.getState(truth.tenant);
    const plotted = this.plot(truth);
    const isSpelled = plotted !== null && typeof plotted === "object";
    const behaviour = isSpelled ? "refuses" : (plotted ?? BEHAVIOURS[state] ?? this.drawBehaviour(truth));
    const heedsAbort = dice.chance(0.8);
    const answer = (outcome: Outcome, delayMs: number) =>
      clock.at(delayMs, () => process.enter(() => end({ ...outcome, relay: "relay.test" }), "answer"));
    signal.addEventListener("abort", () => {
      const broken: Outcome = { kind: "retry", why: "broken off", ...(dice.chance(0.5) && { isSilence: true }) };
      if (heedsAbort) answer(broken, dice.between(0, 50));
      // The engine waits no longer than this; its slot is free again then.
      else process.clock.setTimer(limits.abortGraceMs - 1, () => end(null));
    });
    const slowMs = state === "slow" ? dice.between(SLOW_MS / 2, SLOW_MS) : 0;
    const silentMs = behaviour === "is silent" ? dice.between(SILENT_MS / 2, SILENT_MS) : 0;
    const takesMs =
      this.delayMs(truth) ?? network.legMs() + slowMs + silentMs + dice.skewed(slownessMs(truth.tenant.tenantId));
    const isTaken =
      behaviour === "takes" || behaviour === "takes silently" || (behaviour === "hangs" && dice.chance(0.5));
    if (isTaken) clock.at(takesMs, () => this.take(truth));
    else if (behaviour === "is busy") clock.at(takesMs, () => this.lookAtLinks(truth));
    const outcome = isSpelled ? plotted : this.drawOutcome(behaviour);
    if (outcome !== null) answer(outcome, takesMs + network.legMs());
  }

  private checkCall(process: SimProcess, job: QueuedJob, truth: JobTruth, term: TermTruth): void {
    const { watch, leases, jobs, state, fairness, isQueueSound, isOrdered } = this.parts;
    const { shard, tenantId } = truth.tenant;
    const where = `${process.name}, shard ${shard}, ${job.jobId}`;
    watch.demand(leases.isSurelyHeld(term), "leaseHeld", () => `${where}: not surely held`);
    const holds = state.holder(shard, "dispatcher") === term.lease.token;
    if (isQueueSound) {
      watch.demand(holds, "leaseHeld", () => `${where}: somebody else holds it`);
      watch.demand(!isFinal(truth.status), "repeats", () => `${where}: it is ${truth.status} already`);
    }
    watch.demand(job.suppressed === null, "suppressed", () => `${where}: ${truth.recipient}`);
    // A fallback asks after its message once its recipient was looked up.
    const isNews = jobs.suppressedForMs(truth) <= SUPPRESSED_MS_MAX || job.fallback !== undefined;
    watch.demand(isNews, "suppressed", () => `${where}: ${truth.recipient}, since ${jobs.suppressedForMs(truth)} ms`);
    watch.demand(!job.isReported, "reportedOnce", () => `${where}: handed over all the same`);
    const other = this.inFlight.get(job.jobId);
    const isTwice = other !== undefined && !other.signal.aborted && !this.mayRepeat(truth, other.term);
    watch.demand(!isTwice, "repeats", () => `${where}: in flight in the term ${other?.term.lease.token}`);
    const last = truth.answeredIn;
    const isRepeat = last !== null && !this.mayRepeat(truth, last);
    watch.demand(!isRepeat, "repeats", () => `${where}: answered before, in the term ${last?.lease.token}`);
    // One behind it may pass it while it is looked up again.
    const isInTurn = !fairness.wasLookedUp(process, job.jobId);
    if (isOrdered && isInTurn && job.attempts === 0 && job.waits === undefined) {
      const place = this.lastPlace.get(tenantId) ?? -1;
      watch.demand(truth.place > place, "order", () => `${where}: number ${truth.place} after ${place}`);
      this.lastPlace.set(tenantId, truth.place);
    }
    jobs.touch(job.jobId);
  }

  /** Whether what the term did with the message, or heard of it, may be unknown to whoever has the message now. */
  private mayRepeat({ lent, isExcused }: JobTruth, term: TermTruth): boolean {
    if (isExcused || this.parts.leases.hasBrokenOff(term)) return true;
    // A message that was lent to a delivery that went on comes back when that must be over. Its outcome is stored by
    // then, unless the queue could not be reached.
    const isBack = lent?.token === term.lease.token && this.parts.clock.nowMs >= lent.untilMs;
    return isBack && !this.parts.isQueueNear;
  }

  /** A delivery is not broken off for a silence of the queue, but for its own. */
  /** No other process may have the job. */
  private isOwners({ lent, tenant }: JobTruth, { lease }: TermTruth): boolean {
    const { state, clock } = this.parts;
    if (lent === null) return state.holder(tenant.shard, "dispatcher") === lease.token;
    return lent.token === lease.token && clock.nowMs < lent.untilMs;
  }

  private checkAbort({ jobId }: QueuedJob, { term, begunMs }: HandOver): void {
    const { clock, watch } = this.parts;
    const isLate = clock.nowMs - begunMs >= limits.deliveryTimeoutMs;
    const { process, isFenced, isTakenOver } = term;
    const isRight = isLate || process.isToldToStop || isFenced || isTakenOver;
    watch.demand(isRight, "repeats", () => `the delivery of ${jobId} was broken off while its lease was not lost`);
  }

  /** A gateway that follows a message's links before it refuses it. */
  private lookAtLinks({ tenant: { tenantId }, jobId }: JobTruth): void {
    const { report, callsBack, network } = this.parts;
    if (callsBack || network.weather.report === 0) return;
    const result = { url: "https://example.com/1" };
    report({ tenantId, jobId, type: "clicked", result, suppressRecipient: null }, 0);
  }

  private take(truth: JobTruth): void {
    truth.handOvers += 1;
    this.taken += 1;
    if (truth.handOvers > 1) this.repeats += 1;
    this.parts.trace.note("taken", "provider", truth.jobId);
    const { dice, network, report } = this.parts;
    const { weather } = network;
    if (!dice.chance(weather.report)) return;
    if (this.parts.callsBack) return this.callBack(truth);
    const type = dice.pick<EventType>(["delivered", "delivered", "opened", "clicked", "bounced", "complained"]);
    const suppresses = type === "bounced" || type === "complained";
    const said: DeliveryReport = {
      tenantId: truth.tenant.tenantId,
      jobId: dice.chance(0.05) ? "01900000-0000-7000-8000-000000000000" : truth.jobId,
      type,
      result: type === "clicked" ? { url: `https://example.com/${dice.between(1, 2)}` } : {},
      suppressRecipient: suppresses ? truth.recipient : null,
    };
    const delayMs = dice.chance(weather.reportEarly) ? 0 : dice.skewed(20_000);
    report(said, delayMs);
    if (dice.chance(weather.reportDoubled)) report(said, delayMs + dice.skewed(5_000));
  }

  /**
   * Reports the message's outcome, in any order, each report perhaps twice, and perhaps before the answer to the call.
   */
  private callBack(truth: JobTruth): void {
    const { dice, network, report } = this.parts;
    const { weather } = network;
    const ways: readonly (readonly EventType[])[] = [["sent", "delivered", "read"], ["sent", "failed"], ["read"]];
    const jobId = dice.chance(0.02) ? "01900000-0000-7000-8000-000000000000" : truth.jobId;
    for (const type of dice.pick(ways)) {
      const said = { tenantId: truth.tenant.tenantId, jobId, type, result: { said: type }, suppressRecipient: null };
      const delayMs = dice.chance(weather.reportEarly) ? 0 : dice.skewed(20_000);
      report(said, delayMs);
      if (dice.chance(weather.reportDoubled)) report(said, delayMs + dice.skewed(5_000));
    }
  }

  private drawBehaviour({ tenant }: JobTruth): Behaviour {
    const { dice, network, healthy } = this.parts;
    const { weather } = network;
    if (healthy.has(tenant.tenantId)) return "takes";
    if (dice.chance(weather.providerHangs)) return "hangs";
    if (dice.chance(weather.providerSilent)) return "takes silently";
    if (dice.chance(weather.lostRequest)) return "never hears";
    if (dice.chance(weather.providerTransient)) return "is busy";
    if (dice.chance(weather.providerPermanent)) return dice.chance(0.7) ? "refuses" : "blocks";
    return "takes";
  }

  /** Null: it never answers. */
  private drawOutcome(behaviour: Behaviour): Outcome | null {
    const { dice } = this.parts;
    switch (behaviour) {
      case "takes":
        return { kind: "delivered", result: { message_id: "m" } };
      case "takes silently":
      case "never hears":
        // A caller that can be called back waits for that.
        return this.parts.callsBack && dice.chance(0.7)
          ? { kind: "retry", why: "the connection broke", afterMs: dice.between(1_000, 15_000) }
          : { kind: "retry", why: "the connection broke" };
      case "is busy":
        return dice.pick<Outcome>([
          { kind: "retry", why: "busy" },
          { kind: "retry", why: "busy", afterMs: dice.between(0, 5_000) },
          { kind: "retry", why: "too fast", afterMs: dice.between(0, 5_000), isUncounted: true },
        ]);
      case "refuses":
        return { kind: "failed", error: "refused", detail: { code: 550 } };
      case "blocks":
        return { kind: "suppressed", reason: "bounced" };
      case "is away":
        return { kind: "away", why: "the connection was refused" };
      case "is silent":
        return { kind: "away", why: "no greeting came" };
      case "hangs":
        return null;
    }
  }
}

const BEHAVIOURS: Readonly<Record<RelayState, Behaviour | null>> = {
  prompt: null,
  slow: null,
  hangs: "hangs",
  silent: "is silent",
  away: "is away",
};

/** A message in somebody's hands. */
interface HandOver {
  readonly term: TermTruth;
  readonly signal: AbortSignal;
  readonly begunMs: number;
}

interface ProviderCall {
  readonly signal: AbortSignal;
  /** The call is over for the process; null: it has stopped waiting. */
  end(outcome: Outcome | null): void;
}
