import type { Lease, PullRequest, PullResult, Settlement } from "../../src/domain/jobs/queue.ts";
import { limits } from "../../src/domain/limits.ts";
import type { InstantQueue } from "../support/memory-redis/instant-queue.ts";
import type { JobChecker, JobTruth } from "./job-checker.ts";
import type { Watch } from "./promises.ts";
import type { SimClock } from "./sim-clock.ts";
import { EPOCH_MS, type SimProcess } from "./sim-process.ts";

const MIB = 1024 * 1024;
/** The bounds of one pull, and of all pulls that a process has in flight. */
const PULL_BYTES_MAX = MIB;
const PULLS_BYTES_MAX = 8 * MIB;
/** The bytes of a tenant's messages that may wait in a process, and those that an allowed pull may add. */
const TENANT_BYTES_MAX = 8 * MIB + PULL_BYTES_MAX;
const PROCESS_BYTES_MAX = 128 * MIB + PULLS_BYTES_MAX;
/** By which an owner's reckoning may differ from the shard's time before that follows it. */
const TIME_SLACK_MS = 1_000;
/** The span that a forgetful queue may lose: a second of its life, and the delay until it was noted. */
const FORGOTTEN_MS = 3_000;
/** How long the reply may take by which an owner begins to reckon. */
const REPLY_MS_MAX = 5_000;

export interface SettleCall {
  readonly lease: Lease;
  readonly settlements: readonly Settlement[];
  /** As the owner estimates it. */
  readonly shardTimeMs: number | null;
}

export interface QueueCheckerParts {
  readonly clock: SimClock;
  readonly watch: Watch;
  readonly jobs: JobChecker;
  readonly state: InstantQueue;
  /** Only a step of the queue's clock can delay a retry by more than this; null: other faults can, too. */
  readonly lateMs: number | null;
  /** How far the queue's clock is ahead. */
  queueAheadMs(): number;
  /** How far the queue's clock and a process's are behind: two of three clocks judge a time of day. */
  bothBehindMs(): number;
}

/** The steps of the queue's clock, as a shard's owners see them. */
interface ShardSteps {
  /** The lease under which the last pull came. */
  token: string | null;
  /** The latest time that its owner reckoned with. */
  reckonedMs: number;
  /** Since that pull. */
  pendingMs: number;
  /** Since a pull that was not long on its way. */
  isSetBack: boolean;
  unnoticedMs: number;
  /** The steps that an owner noticed last, and when. */
  noticedMs: number;
  noticedAtMs: number;
  /** When the last pull came, and how long it had been on its way. */
  pulledAtMs: number;
  onItsWayMs: number;
  /** The shard's time then. */
  agreedMs: number;
  /** How far that may be ahead of the truth: it begins there if the queue's clock and its new owner's are, and never goes back. */
  aheadMs: number;
}

/** A pull as it left, by the world's clock and its process's. */
type SentPull = PullRequest & { readonly sentAtMs: number; readonly callerMs: number };

/** A process, the lease under which it acts, and when it sent its messages' outcomes. */
interface Owner {
  readonly process: SimProcess;
  readonly token: string;
  readonly sentAtMs: number;
}

interface Waiting {
  readonly tenantId: string;
  readonly bytes: number;
  readonly token: string;
}

interface Due {
  readonly shard: number;
  /** The delay that the queue has noted, by the shard's time. */
  readonly laterMs: number;
  /** When its wait ends, counted from the time at which the owner sent its outcome, and at which the queue had it. */
  readonly fromMs: number;
  readonly atMs: number;
  /** Steps that no owner of the shard had noticed. */
  readonly unnoticedMs: number;
  /** Steps of the queue's clock before it was. */
  readonly steps: number;
  /** How far the shard's time was behind when it was scheduled, which only its owner could see. */
  readonly behindMs: number;
  /** By how much two of the three clocks were ahead that let it go; null: it is parked. */
  aheadMs: number | null;
}

/** Checks the queue's bytes and times: pulled, waiting in a process, lent, and due jobs. */
export class QueueChecker {
  /** How often the queue's clock was set. */
  private clockSteps = 0;
  /** By how much it was set forward, all steps together. */
  forwardMs = 0;
  /** How far an owner's reckoning may be behind without the queue's knowing it. */
  private behindMs = 0;
  /** The largest step that a job was scheduled behind before its shard's owner pulled again: it may be late by as much. */
  scheduledBehindMs = 0;
  private bothBehindMs = 0;
  private readonly steps = new Map<number, ShardSteps>();
  /** Of each process: messages that it has read and not begun to deliver. */
  private readonly waiting = new Map<SimProcess, Map<string, Waiting>>();
  private readonly pulling = new Map<SimProcess, number>();
  private readonly due = new Map<string, Due>();

  constructor(private readonly parts: QueueCheckerParts) {}

  nowMs(): number {
    return this.parts.clock.nowMs;
  }

  /** The queue's clock is set. */
  clockStepped(byMs: number): void {
    this.clockSteps += 1;
    this.forwardMs += Math.max(0, byMs);
    for (const steps of this.steps.values()) {
      steps.pendingMs += Math.abs(byMs);
      steps.isSetBack ||= byMs < 0;
    }
  }

  /** Steps of the queue's clock that no owner of the shard could notice, because each had yet to come or was gone. */
  unnoticedStepsMs(shard: number): number {
    return this.ensureSteps(shard).unnoticedMs;
  }

  asked(process: SimProcess, { bytesMax, tenantQueues }: PullRequest): void {
    const { watch } = this.parts;
    watch.demand(bytesMax <= PULL_BYTES_MAX, "bytes", () => `a pull of ${bytesMax} bytes`);
    const isBounded = tenantQueues.every((tenantQueue) => tenantQueue.bytesMax <= PULL_BYTES_MAX);
    watch.demand(isBounded, "bytes", () => "a tenant may bring more than a pull");
    const all = (this.pulling.get(process) ?? 0) + bytesMax;
    this.pulling.set(process, all);
    watch.demand(all <= PULLS_BYTES_MAX, "bytes", () => `${process.name} pulls ${all} bytes at one time`);
  }

  answered(process: SimProcess, { bytesMax }: PullRequest): void {
    this.pulling.set(process, (this.pulling.get(process) ?? 0) - bytesMax);
  }

  /** Checks the jobs that the queue hands out. */
  pulled(lease: Lease, request: SentPull, result: PullResult): void {
    this.noticeSteps(lease, request, result);
    this.noteReleased(lease.shard, request.callerMs);
    const jobs = result.tenantQueues.flatMap((tenantQueue) => tenantQueue.jobs);
    let bytes = 0;
    for (const { jobId, payload } of jobs) {
      bytes += payload.length;
      this.checkDue(lease, jobId);
    }
    const isBounded = bytes <= request.bytesMax || jobs.length === 1;
    this.parts.watch.demand(isBounded, "bytes", () => `a reply of ${bytes} bytes of payloads`);
  }

  heardPull(process: SimProcess, lease: Lease, { tenantQueues }: PullResult): void {
    const waiting = this.waitingIn(process);
    for (const { tenantId, jobId, payload } of tenantQueues.flatMap(({ jobs }) => jobs)) {
      waiting.set(jobId, { tenantId, bytes: payload.length, token: lease.token });
    }
    this.checkWaiting(process, waiting);
  }

  /** The message is in the provider's hands, or needs none. */
  begun(process: SimProcess, jobId: string): void {
    this.waiting.get(process)?.delete(jobId);
  }

  /** The relay was away: the message waits in the process again. */
  waitsAgain(process: SimProcess, { jobId, tenant, bytes }: JobTruth, token: string): void {
    this.waitingIn(process).set(jobId, { tenantId: tenant.tenantId, bytes, token });
  }

  /** The queue has their outcomes. */
  settled(process: SimProcess, { lease, settlements }: SettleCall, sentAtMs: number): void {
    for (const settlement of settlements) {
      const { jobId } = settlement.job;
      const truth = this.parts.jobs.jobs.get(jobId);
      if (settlement.kind === "start" || truth === undefined) continue;
      this.begun(process, jobId);
      this.noteParked(truth, settlement, { process, token: lease.token, sentAtMs });
    }
  }

  /** The counted load of each tenant equals its unfinished jobs. */
  compareShares(shard: number, tenantIds: Iterable<string>): void {
    for (const tenantId of tenantIds)
      this.parts.jobs.shares.compare(tenantId, this.parts.state.look(shard).load(tenantId));
  }

  /** Costs more than a step. */
  audit(): void {
    const { clock, lateMs, watch, state, jobs } = this.parts;
    if (lateMs === null) return;
    const behindMs = this.parts.bothBehindMs();
    // They are asked again after an eighth of the time that seems left, or a minute.
    if (behindMs > 0) this.bothBehindMs = Math.max(this.bothBehindMs, (9 / 8) * behindMs + 60_000);
    for (const [jobId, { atMs }] of this.due) {
      const shard = jobs.jobs.get(jobId)?.tenant.shard;
      // Back in its tenant's queue it waits for those before it.
      const isParked = shard !== undefined && state.look(shard).parked.has(jobId);
      const isInTime = !isParked || clock.nowMs <= atMs + TIME_SLACK_MS + lateMs + this.bothBehindMs;
      watch.demand(isInTime, "onTime", () => `${jobId} was due ${clock.nowMs - atMs} ms ago`);
    }
  }

  /**
   * Also forgets that a step was noticed: it is unknown until the owner pulls again, or while the shard has no owner.
   */
  forget(): void {
    this.due.clear();
    // Known, so that a settlement which comes once more is not taken for one that parks anew; and no more than that.
    for (const { jobId, tenant } of this.parts.jobs.jobs.values()) {
      const { shard } = tenant;
      const laterMs = this.parts.state.look(shard).later.get(jobId);
      if (laterMs === undefined) continue;
      const anyTime = { fromMs: 0, atMs: Number.POSITIVE_INFINITY, unnoticedMs: 0, steps: 0, behindMs: 0 };
      this.due.set(jobId, { shard, laterMs, ...anyTime, aheadMs: null });
    }
    this.behindMs = REPLY_MS_MAX;
    for (const steps of this.steps.values()) {
      if (this.parts.clock.nowMs - steps.noticedAtMs < FORGOTTEN_MS) steps.unnoticedMs += steps.noticedMs;
    }
  }

  /** A step that no owner noticed has moved due times. */
  private checkDue({ shard }: Lease, jobId: string): void {
    const due = this.due.get(jobId);
    this.due.delete(jobId);
    if (due === undefined || due.unnoticedMs < this.unnoticedStepsMs(shard)) return;
    const earlyMs = due.fromMs - this.parts.clock.nowMs;
    // Differences smaller than a slow call go unnoticed: a step, and how far the owner's estimate is behind.
    const slackMs =
      TIME_SLACK_MS * (1 + this.clockSteps - due.steps) + due.behindMs + this.behindMs + (due.aheadMs ?? 0);
    this.parts.watch.demand(earlyMs <= slackMs, "onTime", () => `${jobId} comes ${earlyMs} ms early`);
  }

  private checkWaiting(process: SimProcess, waiting: Map<string, Waiting>): void {
    const { watch, state, jobs } = this.parts;
    const byTenant = new Map<string, number>();
    let all = 0;
    for (const [jobId, { tenantId, bytes, token }] of waiting) {
      const shard = jobs.jobs.get(jobId)?.tenant.shard;
      if (shard === undefined || state.holder(shard, "dispatcher") !== token) {
        waiting.delete(jobId);
        continue;
      }
      all += bytes;
      byTenant.set(tenantId, (byTenant.get(tenantId) ?? 0) + bytes);
    }
    watch.demand(all <= PROCESS_BYTES_MAX, "bytes", () => `${process.name} holds ${all} bytes of payloads`);
    for (const [tenantId, bytes] of byTenant) {
      watch.demand(bytes <= TENANT_BYTES_MAX, "bytes", () => `${bytes} bytes of ${tenantId} wait in ${process.name}`);
    }
  }

  /** Jobs that the last call to the queue let go, for two of three clocks said that their time has come. */
  private noteReleased(shard: number, callerMs: number): void {
    const { clock, state } = this.parts;
    const { parked } = state.look(shard);
    const aheadMs = [this.parts.queueAheadMs(), callerMs - EPOCH_MS - clock.nowMs, this.ensureSteps(shard).aheadMs];
    const [, middleMs = 0] = aheadMs.sort((one, other) => one - other);
    for (const [jobId, due] of this.due) {
      if (due.shard === shard && !parked.has(jobId)) due.aheadMs ??= Math.max(0, middleMs);
    }
  }

  /** A job is parked until its time comes. `callerMs`: what the clock of its caller's process shows. */
  scheduled(
    shard: number,
    jobId: string,
    { waitMs, callerMs }: { readonly waitMs: number; readonly callerMs: number },
  ) {
    const laterMs = this.parts.state.look(shard).later.get(jobId) ?? 0;
    const atMs = this.parts.clock.nowMs + Math.ceil(waitMs);
    const { unnoticedMs, pendingMs, isSetBack, pulledAtMs, onItsWayMs } = this.ensureSteps(shard);
    this.scheduledBehindMs = Math.max(this.scheduledBehindMs, pendingMs);
    // A clock that was set back is passed over: the shard's time stands still, as of its owner's last pull, until the next.
    const behindMs = isSetBack ? onItsWayMs + this.parts.clock.nowMs - pulledAtMs : 0;
    // One that was set forward delays it by as much.
    const lateAtMs = atMs + pendingMs;
    const times = { laterMs, fromMs: atMs, atMs: lateAtMs, unnoticedMs, behindMs };
    this.due.set(jobId, { shard, ...times, steps: this.clockSteps, aheadMs: null });
    this.noteReleased(shard, callerMs);
  }

  /** A repeated settlement does not park the job anew. */
  private noteParked(truth: JobTruth, settlement: Settlement, { process, token, sentAtMs }: Owner): void {
    const { clock, state } = this.parts;
    const { shard } = truth.tenant;
    const { later } = state.look(shard);
    const laterMs = later.get(truth.jobId);
    if (laterMs === undefined) this.due.delete(truth.jobId);
    if (laterMs === undefined || settlement.kind === "final" || settlement.kind === "start") return;
    if (this.due.get(truth.jobId)?.laterMs === laterMs) return;
    const waitMs = settlement.kind === "lend" ? settlement.forMs : Math.ceil(settlement.delayMs);
    const atMs = clock.nowMs + waitMs;
    const times = { laterMs, fromMs: sentAtMs + waitMs, atMs, unnoticedMs: this.unnoticedStepsMs(shard), behindMs: 0 };
    this.due.set(truth.jobId, { shard, ...times, steps: this.clockSteps, aheadMs: null });
    if (state.look(shard).lentUnder(truth.jobId) === token) {
      const forMs = process.isToldToStop ? limits.drainMs : limits.deliveryTimeoutMs + limits.abortGraceMs;
      truth.lent = { token, untilMs: clock.nowMs + forMs };
    }
  }

  /**
   * A pull that reckons with a time of its own notices the steps before it; one that comes late does not, and one that may
   * be late leaves it to the next.
   */
  private noticeSteps(
    { shard, token }: Lease,
    { shardTimeMs: reckonedMs, sentAtMs, callerMs }: SentPull,
    { shardTimeMs, estimatedSkewMs }: PullResult,
  ): void {
    const { nowMs } = this.parts.clock;
    const steps = this.ensureSteps(shard);
    const isNew = steps.token !== token || reckonedMs === null;
    if (isNew || shardTimeMs - reckonedMs > limits.clocksApartMs) {
      steps.aheadMs = Math.max(steps.aheadMs, Math.min(this.forwardMs, callerMs - EPOCH_MS - nowMs));
    }
    const isInTime = isNew || reckonedMs >= steps.agreedMs - TIME_SLACK_MS;
    if (isInTime) {
      steps.pulledAtMs = nowMs;
      steps.onItsWayMs = isNew ? 0 : nowMs - sentAtMs;
      steps.isSetBack &&= nowMs - sentAtMs > TIME_SLACK_MS;
      steps.agreedMs = this.parts.state.look(shard).agreedMs ?? 0;
    }
    if (!isInTime || (!isNew && (reckonedMs < steps.reckonedMs || estimatedSkewMs !== null))) return;
    if (isNew) steps.unnoticedMs += steps.pendingMs;
    else if (steps.pendingMs > 0) {
      const isRecent = nowMs - steps.noticedAtMs < FORGOTTEN_MS;
      steps.noticedMs = steps.pendingMs + (isRecent ? steps.noticedMs : 0);
      steps.noticedAtMs = nowMs;
    }
    steps.pendingMs = 0;
    steps.token = token;
    steps.reckonedMs = isNew ? 0 : reckonedMs;
  }

  private ensureSteps(shard: number): ShardSteps {
    const steps = this.steps.get(shard) ?? {
      token: null,
      reckonedMs: 0,
      pendingMs: 0,
      isSetBack: false,
      unnoticedMs: 0,
      noticedMs: 0,
      noticedAtMs: 0,
      pulledAtMs: 0,
      onItsWayMs: 0,
      agreedMs: 0,
      aheadMs: 0,
    };
    this.steps.set(shard, steps);
    return steps;
  }

  private waitingIn(process: SimProcess): Map<string, Waiting> {
    const waiting = this.waiting.get(process) ?? new Map<string, Waiting>();
    this.waiting.set(process, waiting);
    return waiting;
  }
}
