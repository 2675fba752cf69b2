import type { Clock } from "../../domain/clock.ts";
import type { QueuedJob } from "../../domain/job.ts";
import type { Outcome } from "../../domain/outcome.ts";
import type { Settlement } from "../../domain/queue.ts";
import type { Random } from "../../domain/random.ts";
import { decideRetry } from "./retry-policy.ts";

export interface Attempted {
  readonly job: QueuedJob;
  /** Without "away", which records nothing: the job is held. */
  readonly outcome: Exclude<Outcome, { kind: "away" }>;
  /** Whether a delivery was started; false: only the content was checked. */
  readonly wasStarted: boolean;
  /** Whether reports on it will name the provider's reference and not the job. */
  readonly reportsNameReference: boolean;
}

/** What the queue is to write down for an attempt. */
export function settlementOf(attempted: Attempted, clock: Clock, random: Random): Settlement {
  const { job, outcome, wasStarted, reportsNameReference } = attempted;
  switch (outcome.kind) {
    case "delivered": {
      const { result, providerRef } = outcome;
      const sent = { kind: "final", job, status: "success", result, event: { type: "sent", result: {} } } as const;
      return providerRef !== undefined && reportsNameReference ? { ...sent, providerRef } : sent;
    }
    case "failed": {
      const { error, detail } = outcome;
      const cause = outcome.cause ?? (wasStarted ? undefined : "content");
      return {
        kind: "final",
        job,
        status: "failed",
        result: { error, ...detail },
        event: { type: "failed", result: { error } },
        ...(cause !== undefined && { cause }),
      };
    }
    case "suppressed": {
      const result = { reason: outcome.reason };
      return { kind: "final", job, status: "suppressed", result, event: { type: "suppressed", result } };
    }
    case "retry": {
      const { isUncounted } = outcome;
      const decision = decideRetry(job, outcome, clock, random);
      if (decision.kind === "wait") {
        const status = wasStarted ? "running" : "pending";
        return { kind: "retry", job, delayMs: decision.delayMs, status, ...(isUncounted && { isUncounted }) };
      }
      return givenUp(job, decision.error);
    }
  }
}

/** Ends a job whose tries never got a clear answer. */
export function givenUp(job: QueuedJob, error: string): Extract<Settlement, { kind: "final" }> {
  const event = { type: "failed", result: { error } } as const;
  return { kind: "final", job, status: "failed", result: { error }, event, isGivenUp: true };
}
