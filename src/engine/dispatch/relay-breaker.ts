import { type BackOffBounds, backOffMs } from "../../domain/back-off.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import type { Random } from "../../domain/random.ts";
import { extractDomain } from "../../domain/texts/split-address.ts";

/** Strikes without an answer in between that open a breaker. */
const STRIKES_MAX = 3;
/** This many silences open it even if they all concern one recipient domain. */
const SILENT_JOBS_MAX = 8;
/** Jobs and domains that are remembered as strikes. */
const STRUCK_MAX = 64;
const PROBE_WAITS: BackOffBounds = { firstMs: 1_000, maxMs: 30_000, jitter: 0.25 };

/** The part of a delivery's outcome that concerns its relay. */
export type Verdict =
  /** It judged the message, with any result. */
  | "answer"
  /** The whole relay is away. */
  | "away"
  /** It stopped answering in the middle of the message. */
  | "silence"
  /** It was contacted and has not judged the message, for example because this process broke the delivery off. */
  | "nothing"
  /** It was not contacted: the message failed, or was put off, before. */
  | "unasked";

/** `wasBrokenOff`: this process ended the delivery, not its relay and not its deadline. */
export function judgeRelay(outcome: Outcome, wasBrokenOff: boolean): Verdict {
  const isAsked = outcome.relay !== undefined;
  switch (outcome.kind) {
    case "away":
      return "away";
    case "delivered":
      return "answer";
    case "failed":
    case "suppressed":
      return isAsked ? "answer" : "unasked";
    case "retry":
      if (outcome.isUncounted) return isAsked ? "nothing" : "unasked";
      if (outcome.isSilence) return "silence";
      if (wasBrokenOff || outcome.isUncertain) return "nothing";
      return isAsked ? "answer" : "unasked";
  }
}

/**
 * Whether one relay is away. Closed: deliveries go on. Open: it struck three times without an answer in between; its
 * jobs wait. Half-open: after a second, doubled up to thirty seconds, exactly one delivery may probe it.
 *
 * B1. Silence counts once per job and once per recipient domain until the relay answers: a message that makes its relay
 *     hang, or a recipient whose mail does, does not delay other messages.
 * B2. Any answer closes the breaker. A delivery that ended before the relay was contacted is no answer, whatever its
 *     outcome.
 */
export class RelayBreaker {
  private state: "closed" | "open" | "half-open" = "closed";
  private strikes = 0;
  private failedProbes = 0;
  private isProbing = false;
  private hasBeenAway = false;
  private readonly struckJobs = new Set<string>();
  private readonly struckDomains = new Set<string>();

  get isClosed(): boolean {
    return this.state === "closed";
  }

  get isHalfOpen(): boolean {
    return this.state === "half-open";
  }

  get isStruck(): boolean {
    return this.strikes > 0;
  }

  get mayProbe(): boolean {
    return this.state === "half-open" && !this.isProbing;
  }

  /** Whether the job may have caused a silence, which makes another job the better probe. */
  hasStruck(job: QueuedJob): boolean {
    return this.struckJobs.has(job.jobId) || this.struckDomains.has(extractDomain(job.recipient));
  }

  /** Whether only messages without an answer opened it, and never a failure of the whole relay. */
  get isOnlySilent(): boolean {
    return this.state === "open" && !this.hasBeenAway;
  }

  halfOpen(): void {
    if (this.state === "open") this.state = "half-open";
  }

  beginProbe(): void {
    this.isProbing = true;
  }

  /** Ends the probe with any result: without a verdict the breaker is open again. */
  endProbe(): void {
    this.isProbing = false;
    if (this.state === "half-open") this.state = "open";
  }

  /** Records the end of a delivery. Returns whether that opened or closed the breaker. */
  judge(verdict: Verdict, job: QueuedJob, isProbe: boolean): "opened" | "closed" | null {
    if (verdict === "answer") return this.forget();
    if (verdict === "nothing" || verdict === "unasked") return null;
    if (verdict === "silence" && !this.isNewSilence(job)) return null;
    if (verdict === "away") this.hasBeenAway = true;
    this.strikes += 1;
    if (isProbe) this.failedProbes += 1;
    if (this.state !== "closed") return null;
    if (this.strikes < STRIKES_MAX && this.struckJobs.size < SILENT_JOBS_MAX) return null;
    this.state = "open";
    return "opened";
  }

  /** Clears all strikes against the relay. */
  forget(): "closed" | null {
    const wasClosed = this.isClosed;
    this.state = "closed";
    this.strikes = 0;
    this.failedProbes = 0;
    this.hasBeenAway = false;
    this.struckJobs.clear();
    this.struckDomains.clear();
    return wasClosed ? null : "closed";
  }

  /** Returns the time until the next probe, jittered to spread the probes of relays that failed together. */
  untilProbeMs(random: Random): number {
    return Math.ceil(backOffMs(PROBE_WAITS, this.failedProbes, random));
  }

  private isNewSilence(job: QueuedJob): boolean {
    const domain = extractDomain(job.recipient);
    const isNewDomain = !this.struckDomains.has(domain);
    const isNewJob = !this.struckJobs.has(job.jobId);
    if (this.struckJobs.size < STRUCK_MAX) this.struckJobs.add(job.jobId);
    if (this.struckDomains.size < STRUCK_MAX) this.struckDomains.add(domain);
    return isNewJob && (isNewDomain || this.struckJobs.size >= SILENT_JOBS_MAX);
  }
}
