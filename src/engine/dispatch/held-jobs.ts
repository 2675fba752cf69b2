import { type BackOffBounds, backOffMs } from "../../domain/back-off.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { Settlement } from "../../domain/jobs/queue.ts";
import { waitsInLife } from "../../domain/jobs/retry.ts";
import type { Random } from "../../domain/random.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { givenUp } from "./settlement.ts";
import { holdBeginsMs } from "./steered-jobs.ts";

const HOUR_MS = 60 * 60_000;
/** A job is given up only after its relay has been away this long: a short outage must not end old jobs. */
const OUTAGE_MS_MIN = HOUR_MS;
const WAITS_ALONE: BackOffBounds = { firstMs: 1_250, maxMs: 37_500, jitter: 0.2 };

/** Returns how long a relay must have been away before jobs that are older than `holdMs` are given up. */
export function outageMsMin(holdMs: number): number {
  return Math.min(holdMs, OUTAGE_MS_MIN);
}

/** Returns when the hold of the job ends (unix ms). */
export function heldUntilMs(job: QueuedJob, tenant: Tenant): number {
  return holdBeginsMs(job, tenant) + tenant.plan.holdMs;
}

export function gaveUpHeld(job: QueuedJob, why: string, holdMs: number): Settlement {
  return { ...givenUp(job, `${why}: gave up after ${formatDuration(holdMs)}`), cause: "relay_away" };
}

/** Builds an uncounted wait for a single job: its relay was reported away but may still answer other jobs. */
export function waitAlone(job: QueuedJob, random: Random): Settlement {
  const delayMs = Math.round(backOffMs(WAITS_ALONE, waitsInLife(job), random));
  return { kind: "retry", job, delayMs, status: "running", isUncounted: true };
}

function formatDuration(ms: number): string {
  const [count, unit] =
    ms >= HOUR_MS ? [ms / HOUR_MS, "hour"] : ms >= 60_000 ? [ms / 60_000, "minute"] : [ms / 1_000, "second"];
  const rounded = Math.round(count * 10) / 10;
  return `${rounded} ${unit}${rounded === 1 ? "" : "s"}`;
}
