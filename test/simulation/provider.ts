import type { Channel } from "../../src/core/channel.ts";
import type { EventType } from "../../src/core/event.ts";
import { isFinal, type QueuedJob } from "../../src/core/job.ts";
import { limits } from "../../src/core/limits.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import type { DeliveryReport } from "../../src/core/report.ts";
import type { Tenant } from "../../src/core/tenant.ts";
import type { Dice } from "./dice.ts";
import type { FairnessBooks } from "./fairness-books.ts";
import type { JobBooks, JobTruth } from "./job-books.ts";
import type { LeaseBooks, TermTruth } from "./lease-books.ts";
import type { JournalState } from "./memory-journal-state.ts";
import type { Network } from "./network.ts";
import type { Watch } from "./promises.ts";
import type { SimClock } from "./sim-clock.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Trace } from "./trace.ts";

export interface ProviderParts {
  readonly clock: SimClock;
  readonly dice: Dice;
  readonly network: Network;
  readonly trace: Trace;
  readonly watch: Watch;
  readonly jobs: JobBooks;
  readonly leases: LeaseBooks;
  readonly fairness: FairnessBooks;
  readonly state: JournalState;
  readonly slots: number;
  /** It repeats a report until it is taken. */
  readonly callsBack: boolean;
  /** Without faults a tenant's messages come in their order. */
  readonly isOrdered: boolean;
  /** The journal's clock and memory are sound: what it says of leases is the truth. */
  readonly isJournalSound: boolean;
  /** How long a tenant's provider takes at most. */
  slownessMs(tenantId: string): number;
  report(report: DeliveryReport, delayMs: number): void;
}

/** What a provider does with a message. */
export type Behaviour = "takes" | "takes silently" | "hangs" | "never hears" | "refuses" | "is busy" | "blocks";

/** The world's provider: takes messages, or not, and checks with each call that it may be made at all. */
export class Provider {
  /** Messages that were taken a second time, each after a fault that allows it. */
  repeats = 0;
  taken = 0;
  /** What a story has the provider do, instead of chance. */
  plot: (truth: JobTruth) => Behaviour | null = () => null;
  private readonly underWay = new Map<string, TermTruth>();
  private readonly lastPlace = new Map<string, number>();

  constructor(private readonly parts: ProviderParts) {}

  /** Messages that some process is handing over. */
  get callsUnderWay(): number {
    return this.underWay.size;
  }

  channelOf(process: SimProcess): Channel {
    return {
      name: "email",
      slots: this.parts.slots,
      deliver: (job, tenant, signal) => this.deliver(process, job, tenant, signal),
    };
  }

  private deliver(process: SimProcess, job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    const { parts } = this;
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const truth = parts.jobs.jobs.get(job.jobId);
    const term = parts.leases.termOf(process, tenant.shard, "dispatcher");
    parts.trace.note("deliver", process.name, job.jobId);
    parts.watch.demand(truth !== undefined, "nothingLost", () => `${job.jobId} was never accepted`);
    parts.watch.demand(term !== null, "leaseHeld", () => `${process.name} never held shard ${tenant.shard}`);
    if (truth === undefined || term === null) return promise;
    this.checkCall(process, job, truth, term);
    parts.fairness.started(process, tenant);
    this.underWay.set(job.jobId, term);
    truth.tries += 1;

    let isOver = false;
    const end = (outcome: Outcome | null) => {
      if (isOver) return;
      isOver = true;
      parts.fairness.ended(process, tenant);
      if (this.underWay.get(job.jobId) === term) this.underWay.delete(job.jobId);
      if (outcome?.kind === "delivered" && !signal.aborted) truth.answeredIn = term.lease.token;
      if (outcome?.kind === "retry" && outcome.isUncounted) truth.tries -= 1;
      if (outcome !== null) resolve(outcome);
    };
    this.runCall(process, truth, { signal, end });
    return promise;
  }

  private runCall(process: SimProcess, truth: JobTruth, call: UnderWay): void {
    const { dice, clock, network, slownessMs } = this.parts;
    const { signal, end } = call;
    const behaviour = this.plot(truth) ?? this.drawBehaviour();
    const heedsAbort = dice.chance(0.8);
    const answer = (outcome: Outcome, delayMs: number) =>
      clock.at(delayMs, () => process.enter(() => end(outcome), "answer"));
    signal.addEventListener("abort", () => {
      const broken: Outcome = { kind: "retry", why: "broken off" };
      if (heedsAbort) answer(broken, dice.between(0, 50));
      // The engine waits no longer than this; its slot is free again then.
      else process.clock.setTimer(limits.abortGraceMs - 1, () => end(null));
    });
    const takesMs = network.legMs() + dice.skewed(slownessMs(truth.tenant.tenantId));
    const isTaken =
      behaviour === "takes" || behaviour === "takes silently" || (behaviour === "hangs" && dice.chance(0.5));
    if (isTaken) clock.at(takesMs, () => this.take(truth));
    const outcome = this.outcomeOf(behaviour);
    if (outcome !== null) answer(outcome, takesMs + network.legMs());
  }

  private checkCall(process: SimProcess, job: QueuedJob, truth: JobTruth, term: TermTruth): void {
    const { watch, leases, jobs, state, isJournalSound, isOrdered } = this.parts;
    const { shard, tenantId } = truth.tenant;
    const where = `${process.name}, shard ${shard}, ${job.jobId}`;
    watch.demand(leases.isSurelyHeld(term), "leaseHeld", () => `${where}: not surely held`);
    // A step of the journal's clock can end a lease before its time: then two processes may both act in good faith.
    const holds = state.holder(shard, "dispatcher") === term.lease.token;
    if (isJournalSound) {
      watch.demand(holds, "leaseHeld", () => `${where}: somebody else holds it`);
      watch.demand(!isFinal(truth.status), "repeats", () => `${where}: it is ${truth.status} already`);
    }
    watch.demand(job.suppressed === null, "suppressed", () => `${where}: ${truth.recipient}`);
    watch.demand(!job.isReported, "reportedOnce", () => `${where}: handed over all the same`);
    const other = this.underWay.get(job.jobId);
    const isTwice = other?.lease.token === term.lease.token && !truth.isExcused;
    watch.demand(!isTwice, "repeats", () => `${where}: under way in this very term`);
    const last = truth.answeredIn;
    if (last !== null && holds && !truth.isExcused) {
      const isBrokenOff = last !== term.lease.token && !leases.hasEndedWell(last);
      watch.demand(isBrokenOff, "repeats", () => `${where}: answered before, in the term ${last}`);
    }
    if (isOrdered && job.attempts === 0 && job.waits === undefined) {
      const place = this.lastPlace.get(tenantId) ?? -1;
      watch.demand(truth.place > place, "order", () => `${where}: number ${truth.place} after ${place}`);
      this.lastPlace.set(tenantId, truth.place);
    }
    jobs.touch(job.jobId);
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

  /** What becomes of the message, in any order, each report perhaps twice, and perhaps before the answer to the call. */
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

  private drawBehaviour(): Behaviour {
    const { dice, network } = this.parts;
    const { weather } = network;
    if (dice.chance(weather.providerHangs)) return "hangs";
    if (dice.chance(weather.providerSilent)) return "takes silently";
    if (dice.chance(weather.lostRequest)) return "never hears";
    if (dice.chance(weather.providerTransient)) return "is busy";
    if (dice.chance(weather.providerPermanent)) return dice.chance(0.7) ? "refuses" : "blocks";
    return "takes";
  }

  /** Null: it never answers. */
  private outcomeOf(behaviour: Behaviour): Outcome | null {
    const { dice } = this.parts;
    switch (behaviour) {
      case "takes":
        return { kind: "delivered", result: { message_id: "m" } };
      case "takes silently":
      case "never hears":
        // Who may be called back waits for that.
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
      case "hangs":
        return null;
    }
  }
}

interface UnderWay {
  readonly signal: AbortSignal;
  /** The call is over for the process; null: it has stopped waiting. */
  end(outcome: Outcome | null): void;
}
