import type { Clock } from "../core/clock.ts";
import { jobTimeMs } from "../core/ids.ts";
import type { QueuedJob } from "../core/job.ts";
import { limits } from "../core/limits.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Random } from "../core/random.ts";

type Retry = Extract<Outcome, { kind: "retry" }>;

export type RetryDecision =
  | { readonly kind: "wait"; readonly delayMs: number }
  /** The job has had its attempts, or the next one would come too late to be of use. */
  | { readonly kind: "give_up"; readonly error: string };

/**
 * What follows a transient failure: an exponential wait with full jitter, so that what failed together does not come back
 * together, and never less than the provider asked for.
 */
export function decideRetry(job: QueuedJob, outcome: Retry, clock: Clock, random: Random): RetryDecision {
  const attempts = job.attempts + 1;
  const ceilingMs = Math.min(limits.retryDelayMsMax, limits.retryBaseMs * limits.retryFactor ** job.attempts);
  const delayMs = Math.max(outcome.afterMs ?? 0, Math.round(random.next() * ceilingMs));
  const ageThenMs = clock.nowMs() + delayMs - jobTimeMs(job.jobId);
  const isSpent = attempts >= limits.attemptsMax && outcome.isUncounted === undefined;
  if (isSpent || ageThenMs > limits.retryAgeMsMax) {
    return {
      kind: "give_up",
      error: `gave up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: ${outcome.why}`,
    };
  }
  return { kind: "wait", delayMs };
}
