import type { Clock } from "../../domain/clock.ts";
import { jobTimeMs } from "../../domain/ids.ts";
import type { QueuedJob } from "../../domain/job.ts";
import { limits } from "../../domain/limits.ts";
import type { Outcome } from "../../domain/outcome.ts";
import type { Random } from "../../domain/random.ts";

type Retry = Extract<Outcome, { kind: "retry" }>;

export type RetryDecision =
  | { readonly kind: "wait"; readonly delayMs: number }
  /** The job has had its attempts, or the next one would come too late to be of use. */
  | { readonly kind: "give_up"; readonly error: string };

/**
 * What follows a transient failure: an exponential wait with full jitter, so that what failed together does not come back
 * together, and never less than the provider asked for. Waits that cost no attempt do not make those behind them longer,
 * but where nobody says how long one has to be: then it grows by their number, too.
 *
 * A job is given up after its attempts, or when it has waited for a day in all. It may have been in its box for longer
 * than that before its turn came, so its age alone says nothing; the number of its waits and the length of the next, as
 * waits hardly get shorter, is the other estimate. Only when both say that it was a day has it been one.
 */
export function decideRetry(job: QueuedJob, outcome: Retry, clock: Clock, random: Random): RetryDecision {
  const isCounted = outcome.isUncounted === undefined;
  const attempts = job.attempts + (isCounted ? 1 : 0);
  const ceilingMs = Math.min(limits.retryDelayMsMax, limits.retryBaseMs * limits.retryFactor ** stepOf(job, outcome));
  const delayMs = Math.max(outcome.afterMs ?? 0, Math.round(random.next() * ceilingMs));
  const ageThenMs = clock.nowMs() + delayMs - jobTimeMs(job.jobId);
  const waitedMs = Math.min(ageThenMs, delayMs * (isCounted ? attempts : (job.waits ?? 0) + 1));
  const isSpent = isCounted && attempts >= (outcome.attemptsMax ?? limits.attemptsMax);
  if (isSpent || waitedMs > limits.retryWaitedMsMax) {
    return {
      kind: "give_up",
      error: `gave up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: ${outcome.why}`,
    };
  }
  return { kind: "wait", delayMs };
}

/** How many waits came before, for the length of this one. */
function stepOf({ attempts, waits = 0 }: QueuedJob, { isUncounted, afterMs }: Retry): number {
  if (isUncounted === undefined) return attempts;
  return afterMs === undefined ? attempts + waits : 0;
}
