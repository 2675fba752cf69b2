import { jobTimeMs } from "../../src/domain/ids.ts";
import { type EventType, isByReader } from "../../src/domain/jobs/event.ts";
import { isFinal, type JobRecord, type JobStatus, type JobStep, TRANSITIONS } from "../../src/domain/jobs/job.ts";
import type { NewJob, QueueQuota } from "../../src/domain/jobs/queue.ts";
import { limits } from "../../src/domain/limits.ts";
import type { Tenant } from "../../src/domain/tenants/tenant.ts";
import { wasReceived } from "../../src/engine/dispatch/fallback-decision.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import { countPayloadBytes } from "../../src/engine/queue/codec.ts";
import type { TermTruth } from "./lease-checker.ts";
import type { Watch } from "./promises.ts";
import { ShareChecker } from "./share-checker.ts";
import type { SimClock } from "./sim-clock.ts";
import { EPOCH_MS } from "./sim-process.ts";

/** The truth about a job, whether or not anybody knows it. */
export interface JobTruth {
  readonly jobId: string;
  readonly tenant: Tenant;
  readonly recipient: string;
  /** Its place among all that were accepted. */
  readonly place: number;
  status: JobStatus;
  events: number;
  /** Of its present life, as all that follows but what says otherwise. */
  readonly types: Set<EventType>;
  /** Types of the reports that the queue has taken from a provider which then needs not repeat them. */
  readonly told: Set<EventType>;
  /** The same of all its lives. */
  readonly everTold: Set<EventType>;
  /** How often an operator has retried it. */
  retries: number;
  /** Of its payload. */
  readonly bytes: number;
  /**
   * The time of its acceptance or last retry, and how far the queue's clock had been set until then while its shard had
   * no owner.
   */
  acceptedMs: number;
  /** When that was asked for: a request can take effect long after it was sent. */
  askedMs: number;
  stepsMs: number;
  /** The forward steps of the queue's clock before it was accepted. */
  readonly forwardMs: number;
  /** The term in which its process heard that the provider has it. */
  answeredIn: TermTruth | null;
  /** Its owner gave it up for a successor although its delivery went on, which must be over by then. */
  lent: { readonly token: string; readonly untilMs: number } | null;
  /** In all its lives. */
  handOvers: number;
  /** Deliveries that were started, except mere waits and those that reached no recipient. */
  tries: number;
  /** A process heard that the provider wants it no more. */
  isRefused: boolean;
  /** The state of its relay by the last answer that was heard; null: no answer yet. */
  lastHeard: "away" | "answered" | null;
  /** The queue forgot something about it: it may be missing, and known events may happen again. */
  isExcused: boolean;
  /** It waited for a time at first. */
  readonly isScheduled: boolean;
  /** It has ended because its tenant cancelled it. */
  isCanceled: boolean;
  /** The message that it is a fallback of; null: none. */
  readonly fallbackOf: string | null;
  /** When it was handed out last, that message had been received. */
  isUnneeded: boolean;
  /** The queue forgot that it was accepted. */
  isForgotten: boolean;
}

/** For the time that passes as it should. */
const LEAVE_SLACK_MS = 60_000;

const ENDING: Readonly<Record<string, EventType | undefined>> = {
  success: "sent",
  failed: "failed",
  suppressed: "suppressed",
};
const ENDING_TYPES: ReadonlySet<EventType> = new Set(["sent", "failed", "suppressed"]);

export interface JobCheckerOptions {
  readonly read: (tenant: Tenant, jobId: string) => JobRecord | null;
  /** The queue never both forgets and goes back in time: then its event ids and batch tokens could repeat themselves. */
  readonly isClockSound: boolean;
  /** Every process knows how late it is, so how old a job is. */
  readonly isAgeKnown: boolean;
  /** How far the queue's clock has been set while the shard had no owner. */
  unnoticedStepsMs(shard: number): number;
  /** How far the queue's clock has been set forward, all steps together. */
  forwardStepsMs(): number;
  /** A job is in the queue. */
  landed(truth: JobTruth): void;
  ended(truth: JobTruth): void;
  /** An operator has purged the tenant since the job was accepted. */
  isPurged(truth: JobTruth): boolean;
}

/** Whether a report shows that the provider has it. */
export function isReported({ told }: Pick<JobTruth, "told">): boolean {
  return [...told].some((type) => !isByReader(type));
}

/** The truth about jobs and their events, kept beside the queue and compared with it wherever a job is touched. */
export class JobChecker {
  readonly jobs = new Map<string, JobTruth>();
  /** Every event that the queue ever held, with the job that it belongs to. */
  readonly events = new Map<string, { readonly jobId: string; readonly index: number }>();
  /** The events among them that it forgot. */
  readonly forgottenEvents = new Set<string>();
  /** Each tenant's share of the queue. */
  readonly shares: ShareChecker;
  private readonly lastEventIds = new Map<string, number>();
  /** Since when. */
  private readonly suppressed = new Map<string, number>();

  constructor(
    private readonly clock: SimClock,
    private readonly watch: Watch,
    private readonly options: JobCheckerOptions,
  ) {
    this.shares = new ShareChecker(watch);
  }

  get isClockSound(): boolean {
    return this.options.isClockSound;
  }

  /** `waitMs`: how long it waits for its time; 0 or less: it does not. */
  landed(tenant: Tenant, job: NewJob, waitMs: number): void {
    const known = this.jobs.get(job.jobId);
    const isNew = known === undefined || known.isForgotten;
    const hasLeftEarly = !isNew && (this.hasLeftEarly(known) || this.hasLostItsMark(known));
    this.watch.demand(isNew || hasLeftEarly, "repeats", () => `${job.jobId} was accepted twice`);
    const truth: JobTruth = {
      jobId: job.jobId,
      tenant,
      recipient: job.recipient,
      place: this.jobs.size,
      status: "pending",
      events: 0,
      types: new Set(),
      told: new Set(),
      everTold: new Set(),
      retries: 0,
      bytes: countPayloadBytes(job),
      acceptedMs: this.clock.nowMs + Math.max(0, waitMs),
      askedMs: waitMs > 0 ? this.clock.nowMs + waitMs : jobTimeMs(job.jobId) - EPOCH_MS,
      stepsMs: this.options.unnoticedStepsMs(tenant.shard),
      forwardMs: this.options.forwardStepsMs(),
      answeredIn: hasLeftEarly ? null : (known?.answeredIn ?? null),
      lent: null,
      handOvers: known?.handOvers ?? 0,
      tries: known?.tries ?? 0,
      isRefused: known?.isRefused ?? false,
      lastHeard: known?.lastHeard ?? null,
      isExcused: hasLeftEarly || (known?.isExcused ?? false),
      isForgotten: false,
      isScheduled: waitMs > 0,
      isCanceled: false,
      fallbackOf: job.fallback?.mainJobId ?? null,
      isUnneeded: false,
    };
    this.jobs.set(job.jobId, truth);
    this.shares.begun(truth, job.quota);
    this.options.landed(truth);
    this.touch(job.jobId);
  }

  /** Its tenant has moved it: its life begins then. */
  moved(jobId: string, waitMs: number): void {
    const truth = this.jobs.get(jobId);
    if (truth === undefined) return;
    truth.acceptedMs = this.clock.nowMs + Math.max(0, waitMs);
    truth.askedMs = truth.acceptedMs;
    this.touch(jobId);
  }

  /** Its tenant was told that it is cancelled. */
  canceled(jobId: string): void {
    this.touch(jobId);
    const truth = this.jobs.get(jobId);
    if (truth === undefined || this.options.read(truth.tenant, jobId) === null) return;
    this.watch.demand(truth.isCanceled, "canceled", () => `${jobId} is ${truth.status}`);
  }

  /** A delivery of the job starts, or its owner hears how it went. */
  inHand(truth: JobTruth): void {
    const { jobId, isCanceled, isExcused, isUnneeded } = truth;
    this.watch.demand(!isCanceled || isExcused, "canceled", () => `${jobId} is sent all the same`);
    const isWanted = !(isUnneeded && this.wasReceivedBefore(truth)) || isExcused;
    this.watch.demand(isWanted, "fallback", () => `${jobId} is sent, and nobody needs it`);
  }

  /** The queue hands the job to its shard's owner, which looks at its message afterwards. */
  handedOut(jobId: string): void {
    const truth = this.jobs.get(jobId);
    if (truth !== undefined) truth.isUnneeded = this.wasReceivedBefore(truth);
  }

  /** Whether the message that it is a fallback of was received, as the queue has it. */
  private wasReceivedBefore({ tenant, fallbackOf }: JobTruth): boolean {
    const main = fallbackOf === null ? null : this.options.read(tenant, fallbackOf);
    return main !== null && wasReceived(main, ["sent"]);
  }

  /** A fallback that was not needed had a message that was received, or none. */
  private checkUnneeded(truth: JobTruth): void {
    const { jobId, fallbackOf, isExcused } = truth;
    const main = this.jobs.get(fallbackOf ?? "");
    const isRight = main === undefined || main.types.has("sent") || main.isExcused || main.isForgotten || isExcused;
    this.watch.demand(isRight, "fallback", () => `${jobId} was needed: its message is ${main?.status}`);
  }

  /** The queue has taken a report of the provider's. */
  told(jobId: string, type: EventType): void {
    const truth = this.jobs.get(jobId);
    truth?.told.add(type);
    truth?.everTold.add(type);
  }

  /** The job begins another life. `wasNamed`: the call named the life that failed. */
  retried(jobId: string, wasNamed: boolean, quota: QueueQuota | undefined): void {
    const truth = this.jobs.get(jobId);
    this.watch.demand(truth !== undefined, "nothingLost", () => `${jobId} was never accepted`);
    if (truth === undefined) return;
    const { status, isExcused, isForgotten, tenant } = truth;
    const isRight = (status === "failed" && wasNamed) || isExcused;
    this.watch.demand(isRight, "retried", () => `${jobId} was ${status}, as seen before: ${wasNamed}`);
    const isCounted = !isFinal(status) && !isForgotten;
    truth.status = "pending";
    truth.retries += 1;
    truth.types.clear();
    truth.told.clear();
    truth.acceptedMs = this.clock.nowMs;
    truth.askedMs = truth.acceptedMs;
    truth.stepsMs = this.options.unnoticedStepsMs(tenant.shard);
    truth.answeredIn = null;
    truth.lent = null;
    truth.tries = 0;
    truth.isRefused = false;
    truth.lastHeard = null;
    truth.isForgotten = false;
    if (!isCounted) this.shares.begun(truth, quota);
    this.touch(jobId);
  }

  suppress(tenantId: string, recipient: string): void {
    const name = `${tenantId} ${recipient}`;
    if (!this.suppressed.has(name)) this.suppressed.set(name, this.clock.nowMs);
  }

  /** How long it has been on the list; 0: it is not. */
  suppressedForMs({ tenant, recipient }: JobTruth): number {
    const sinceMs = this.suppressed.get(`${tenant.tenantId} ${recipient}`);
    return sinceMs === undefined ? 0 : this.clock.nowMs - sinceMs;
  }

  isSuppressed({ tenant, recipient }: JobTruth): boolean {
    return this.suppressed.has(`${tenant.tenantId} ${recipient}`);
  }

  hasEvent({ tenantId, eventId }: { readonly tenantId: string; readonly eventId: number }): boolean {
    return this.events.has(`${tenantId}#${eventId}`);
  }

  /** Compares the queue's state of a job with its former state. */
  touch(jobId: string): void {
    const truth = this.jobs.get(jobId);
    if (truth === undefined) return;
    const record = this.options.read(truth.tenant, jobId);
    if (record === null) {
      // A final job leaves the queue once the event store has it; the audit looks for its events there.
      const isKept = isFinal(truth.status) || truth.isForgotten;
      this.watch.demand(isKept, "nothingLost", () => `${jobId} was ${truth.status} and is gone`);
      return;
    }
    // A process that had it in hand has written it down again.
    const { isForgotten } = truth;
    truth.isForgotten = false;
    const wasFinal = isFinal(truth.status);
    this.checkStatus(truth, record);
    if (!wasFinal && isFinal(truth.status)) this.ended(truth, record, isForgotten);
    this.checkEnding(truth, record);
    this.takeEvents(truth, record);
    this.checkReports(truth);
  }

  /** The queue went back in time: its state is now the truth, and differences are excused. */
  rewind(suppressed: Iterable<readonly [tenantId: string, recipient: string]>): void {
    this.suppressed.clear();
    for (const [tenantId, recipient] of suppressed) this.suppress(tenantId, recipient);
    for (const truth of this.jobs.values()) this.rewindJob(truth);
    this.shares.recount([...this.jobs.values()].filter(({ status, isForgotten }) => !isFinal(status) && !isForgotten));
    for (const [key, { jobId, index }] of this.events) {
      if (index >= (this.jobs.get(jobId)?.events ?? 0)) this.forgottenEvents.add(key);
    }
  }

  /** A step of the queue's clock while the shard has no owner can make finished jobs leave early. */
  private hasLeftEarly({ status, stepsMs, tenant }: JobTruth): boolean {
    const steppedMs = this.options.unnoticedStepsMs(tenant.shard) - stepsMs;
    return isFinal(status) && steppedMs >= engineLimits.jobKeptMs - LEAVE_SLACK_MS;
  }

  /** The mark of a repeat, which stops the tries before it, expires by the queue's clock. */
  private hasLostItsMark({ forwardMs }: JobTruth): boolean {
    return this.options.forwardStepsMs() - forwardMs >= engineLimits.jobKeptMs - LEAVE_SLACK_MS;
  }

  /** The queue does not count attempts that it does not remember, either. */
  private ended(truth: JobTruth, { result, attempts }: JobRecord, wasForgotten: boolean): void {
    this.options.ended(truth);
    truth.isCanceled = result?.["reason"] === "canceled";
    if (result?.["reason"] === "not_needed") this.checkUnneeded(truth);
    if (!wasForgotten) this.shares.ended(truth);
    const { tenant, status, askedMs, isRefused, told } = truth;
    if (status !== "failed" || isRefused || told.has("failed")) return;
    // The message was not refused: it has had its attempts, or its relay was away for as long as it is held. A hold is
    // counted from the job's id, which is made before the queue is asked to take it; a retry is asked for longer.
    const heldSinceMs = askedMs - limits.acceptRetryMs;
    const isHoldOver = this.clock.nowMs >= heldSinceMs + tenant.plan.holdMs || !this.options.isAgeKnown;
    const isPurged = this.options.isPurged(truth);
    const isRight = attempts >= limits.attemptsMax || isHoldOver || truth.isExcused || isPurged;
    this.watch.demand(isRight, "held", () => `${truth.jobId} failed early: ${JSON.stringify(result)}`);
  }

  private rewindJob(truth: JobTruth): void {
    const record = this.options.read(truth.tenant, truth.jobId);
    const isChanged = record?.status !== truth.status || record.events.length !== truth.events;
    // A message in flight may have been handed over in the forgotten time.
    if (isChanged || !isFinal(truth.status)) truth.isExcused = true;
    truth.isForgotten = record === null;
    truth.isCanceled = record?.result?.["reason"] === "canceled";
    truth.status = record?.status ?? "pending";
    truth.events = record?.events.length ?? 0;
  }

  private checkStatus(truth: JobTruth, record: JobRecord): void {
    // The table's keys are its type's.
    // An operator's step is none of an owner's or a provider's: `retried`.
    const steps = (Object.keys(TRANSITIONS[truth.status]) as JobStep[]).filter((step) => step !== "again");
    const mayBecome = steps.some((step) => TRANSITIONS[truth.status][step].includes(record.status));
    this.watch.demand(
      record.status === truth.status || mayBecome,
      "transitions",
      () => `${truth.jobId} went from ${truth.status} to ${record.status}`,
    );
    truth.status = record.status;
  }

  private checkEnding({ told, tries, handOvers, answeredIn, isExcused }: JobTruth, record: JobRecord): void {
    const { jobId, status, result, attempts } = record;
    const [ending, ...others] = inPresentLife(record)
      .filter(({ type }) => ENDING_TYPES.has(type))
      .map(({ type }) => type);
    // A provider may say of a message that we could not hand over that it was sent, and of one that we did that it failed.
    const agrees = ending === ENDING[status] && others.every((type) => told.has(type));
    this.watch.demand(agrees, "eventAndStatus", () => `${jobId} is ${status} with [${[ending, ...others].join(", ")}]`);
    const wasTaken = handOvers > 0 || answeredIn !== null;
    const isTaken = wasTaken || isReported({ told }) || isExcused;
    this.watch.demand(status !== "success" || isTaken, "taken", () => `${jobId} was taken by nobody`);
    // A job that ends without a try (its recipient is suppressed, its hold is over) counts as one, also where a report
    // makes it a success.
    const isUntried = status === "suppressed" || status === "failed" || told.size > 0;
    const isCounted = attempts <= tries + (isUntried ? 1 : 0) || isExcused;
    this.watch.demand(isCounted, "attempts", () => `${jobId} counts ${attempts} attempts after ${tries} tries`);
    const isComplete = isFinal(status) ? result !== null && attempts > 0 : result === null;
    this.watch.demand(isComplete, "eventAndStatus", () => `${jobId} is ${status} after ${attempts} attempts`);
  }

  /** Reports that waited for the job's end become events with it. */
  private checkReports({ jobId, status, told, types, isExcused }: JobTruth): void {
    if (!isFinal(status) || isExcused) return;
    const missing = [...told].filter((type) => !types.has(type));
    this.watch.demand(missing.length === 0, "reportKept", () => `${jobId} is ${status} without ${missing.join(", ")}`);
  }

  private takeEvents(truth: JobTruth, record: JobRecord): void {
    const { events, jobId } = record;
    const { watch } = this;
    const { tenantId } = truth.tenant;
    watch.demand(events.length >= truth.events, "nothingLost", () => `${jobId} lost an event`);
    const types = inPresentLife(record).map(({ type, result }) => (type === "clicked" ? JSON.stringify(result) : type));
    const isOnce = new Set(types).size === types.length;
    watch.demand(isOnce, "oneEventAType", () => `${jobId} has [${types.join(", ")}]`);
    for (const [index, { eventId, type }] of events.entries()) {
      if (index < truth.events) continue;
      if (eventId > (record.began ?? 0)) truth.types.add(type);
      const newest = this.lastEventIds.get(tenantId) ?? 0;
      watch.demand(
        eventId > newest || truth.isExcused || !this.isClockSound,
        "eventOrder",
        () => `event ${eventId} of ${jobId} after ${newest}`,
      );
      this.lastEventIds.set(tenantId, Math.max(newest, eventId));
      this.events.set(`${tenantId}#${eventId}`, { jobId, index });
      this.forgottenEvents.delete(`${tenantId}#${eventId}`);
    }
    truth.events = events.length;
  }
}

/** A message that was retried may have the events of its former lives once more. */
function inPresentLife({ events, began = 0 }: JobRecord): JobRecord["events"] {
  return events.filter(({ eventId }) => eventId > began);
}
