import type { Clock } from "../core/clock.ts";
import type { QueuedJob } from "../core/job.ts";
import type { Settlement } from "../core/journal.ts";
import type { Outcome } from "../core/outcome.ts";
import type { Random } from "../core/random.ts";
import { decideRetry } from "./retry-policy.ts";

export interface Attempted {
  readonly job: QueuedJob;
  readonly outcome: Outcome;
  /** Whether a delivery was started, and not only the content looked at. */
  readonly wasStarted: boolean;
}

/** What the journal is to write down for an attempt. */
export function settlementOf({ job, outcome, wasStarted }: Attempted, clock: Clock, random: Random): Settlement {
  switch (outcome.kind) {
    case "delivered":
      return { kind: "final", job, status: "success", result: outcome.result, event: { type: "sent", result: {} } };
    case "failed": {
      const { error, detail } = outcome;
      return {
        kind: "final",
        job,
        status: "failed",
        result: { error, ...detail },
        event: { type: "failed", result: { error } },
      };
    }
    case "suppressed": {
      const result = { reason: outcome.reason };
      return { kind: "final", job, status: "suppressed", result, event: { type: "suppressed", result } };
    }
    case "retry": {
      const decision = decideRetry(job, outcome, clock, random);
      if (decision.kind === "wait") {
        return { kind: "retry", job, delayMs: decision.delayMs, status: wasStarted ? "running" : "pending" };
      }
      return settlementOf({ job, outcome: { kind: "failed", error: decision.error }, wasStarted }, clock, random);
    }
  }
}
