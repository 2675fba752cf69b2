import { backOffMs } from "../../domain/back-off.ts";
import type { Clock } from "../../domain/clock.ts";
import { lifeBeganMs } from "../../domain/ids.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import { waitsInLife } from "../../domain/jobs/retry.ts";
import { limits } from "../../domain/limits.ts";
import type { Random } from "../../domain/random.ts";
import { engineLimits } from "../limits.ts";

type Retry = Extract<Outcome, { kind: "retry" }>;

export type RetryDecision =
  | { readonly kind: "wait"; readonly delayMs: number }
  /** The job has used up its attempts, or the next one would come too late to be useful. */
  | { readonly kind: "give_up"; readonly error: string };

/**
 * Decides what follows a transient failure: an exponential wait with full jitter, which spreads out jobs that failed
 * together, and is never shorter than the provider's own minimum. Uncounted waits do not lengthen later waits, except
 * where the provider names no length: then the wait grows with their number, too.
 *
 * A job is given up after its last attempt, or when it has waited for a day in all. How long it has waited is the
 * smaller of two estimates: its age, which includes the time in its tenant queue before its turn came, and the number
 * of its waits times the length of the next one, since waits hardly get shorter.
 */
export function decideRetry(job: QueuedJob, outcome: Retry, clock: Clock, random: Random): RetryDecision {
  const isCounted = outcome.isUncounted === undefined;
  const attempts = job.attempts + (isCounted ? 1 : 0);
  const plannedMs = Math.round(backOffMs(engineLimits.jobRetry, countEarlierWaits(job, outcome), random));
  const delayMs = Math.max(outcome.afterMs ?? 0, plannedMs);
  const ageThenMs = clock.nowMs() + delayMs - lifeBeganMs(job);
  const waitedMs = Math.min(ageThenMs, delayMs * (isCounted ? attempts : waitsInLife(job) + 1));
  const isSpent = isCounted && attempts >= (outcome.attemptsMax ?? limits.attemptsMax);
  if (isSpent || waitedMs > engineLimits.retryWaitedMsMax) {
    return {
      kind: "give_up",
      error: `gave up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: ${outcome.why}`,
    };
  }
  return { kind: "wait", delayMs };
}

/** Returns the number of earlier waits that determines the length of this one. */
function countEarlierWaits(job: QueuedJob, { isUncounted, afterMs }: Retry): number {
  if (isUncounted === undefined) return job.attempts;
  return afterMs === undefined ? job.attempts + waitsInLife(job) : 0;
}
