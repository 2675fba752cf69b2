import { isFinal } from "../../src/domain/jobs/job.ts";
import type { JobTruth } from "./job-checker.ts";
import type { Watch } from "./promises.ts";
import type { SimClock } from "./sim-clock.ts";

/** For its relay to be found away, and for a message that waits by itself until then: three strikes, and their waits. */
const HELD_SLACK_MS = 60_000;

/** How long messages of well-behaved tenants wait for their first hand-over, whatever their neighbours do. */
export class WaitChecker {
  /** The acceptance times of messages without a hand-over, oldest first. */
  private readonly waiting = new Map<string, number>();
  longestMs = 0;

  constructor(
    private readonly clock: SimClock,
    private readonly watch: Watch,
    /** Tenants with a prompt relay, within all limits. */
    private readonly healthy: ReadonlySet<string>,
    /** The wait that the design promises them; see the README. */
    private readonly boundMs: number,
  ) {}

  accepted({ jobId, tenant }: JobTruth): void {
    if (this.healthy.has(tenant.tenantId)) this.waiting.set(jobId, this.clock.nowMs);
  }

  /** Or needs it no more, because its recipient is suppressed. */
  handedOver(jobId: string): void {
    const acceptedMs = this.waiting.get(jobId);
    if (acceptedMs === undefined) return;
    this.check(jobId, acceptedMs);
    this.waiting.delete(jobId);
  }

  /** Also notices a message that is never handed over. */
  stepped(): void {
    const oldest = this.waiting.entries().next();
    if (oldest.done === false) this.check(...oldest.value);
  }

  /** A message whose relay stays away fails when it was held for as long as its plan says; costs more than a step. */
  auditHeld(jobs: Iterable<JobTruth>, awaySinceMs: (truth: JobTruth) => number | null): void {
    for (const truth of jobs) {
      const { jobId, status, lastHeard, acceptedMs, tenant } = truth;
      const { holdMs } = tenant.plan;
      if (holdMs === undefined || isFinal(status) || lastHeard !== "away") continue;
      const sinceMs = awaySinceMs(truth);
      if (sinceMs === null) continue;
      const isInTime = this.clock.nowMs <= Math.max(acceptedMs, sinceMs) + holdMs + HELD_SLACK_MS;
      this.watch.demand(isInTime, "heldTooLong", () => `${jobId} is held since ${acceptedMs}`);
    }
  }

  private check(jobId: string, acceptedMs: number): void {
    const waitedMs = this.clock.nowMs - acceptedMs;
    this.longestMs = Math.max(this.longestMs, waitedMs);
    this.watch.demand(waitedMs <= this.boundMs, "waits", () => `${jobId} has waited for ${waitedMs} ms`);
  }
}
