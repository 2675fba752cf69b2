import type { Clock } from "../../domain/clock.ts";
import type { Attempt, QueuedJob } from "../../domain/jobs/job.ts";
import type { Outcome } from "../../domain/jobs/outcome.ts";
import type { Settlement } from "../../domain/jobs/queue.ts";
import { limits } from "../../domain/limits.ts";
import type { Random } from "../../domain/random.ts";
import { decideRetry } from "./retry-policy.ts";

export interface Attempted {
  readonly job: QueuedJob;
  /** Without "away", which is not recorded: the job waits. */
  readonly outcome: Exclude<Outcome, { kind: "away" }>;
  /** Whether a delivery was started; false: only the content was checked. */
  readonly wasStarted: boolean;
  /** Whether reports on it will name the provider's reference and not the job. */
  readonly reportsNameReference: boolean;
  /** How long the delivery took; absent: none was started. */
  readonly ms?: number;
}

/** Builds the queue's record of an attempt. */
export function toSettlement(attempted: Attempted, clock: Clock, random: Random): Settlement {
  const { job, outcome, wasStarted, reportsNameReference } = attempted;
  const nowMs = clock.nowMs();
  switch (outcome.kind) {
    case "delivered": {
      const { result, providerRef, further } = outcome;
      const event = { type: "sent", result: {} } as const;
      const traced =
        further === undefined ? describeAttempt(attempted, nowMs) : { further, ...describeAttempt(attempted, nowMs) };
      const sent = { kind: "final", job, status: "success", result, event, ...traced } as const;
      return providerRef !== undefined && reportsNameReference ? { ...sent, providerRef } : sent;
    }
    case "failed": {
      const { error, detail, bounce, further } = outcome;
      const cause = outcome.cause ?? (wasStarted ? undefined : "content");
      return {
        kind: "final",
        job,
        status: "failed",
        result: { error, ...detail },
        event: bounce === undefined ? { type: "failed", result: { error } } : { type: "bounced", result: bounce },
        ...(cause !== undefined && { cause }),
        ...(further !== undefined && { further }),
        ...describeAttempt(attempted, nowMs),
      };
    }
    case "suppressed": {
      const { reason, topic } = outcome;
      const result = topic === undefined ? { reason } : { reason, topic };
      // A waiting report shows that the provider has the message, so an earlier try has sent it.
      const doubt = reason === "canceled" || reason === "not_needed" ? ({ isGivenUp: true } as const) : {};
      return { kind: "final", job, status: "suppressed", result, event: { type: "suppressed", result }, ...doubt };
    }
    case "retry": {
      const { isUncounted } = outcome;
      const decision = decideRetry(job, outcome, clock, random);
      if (decision.kind === "wait") {
        const status = wasStarted ? "running" : "pending";
        const { delayMs } = decision;
        const traced = describeAttempt(attempted, nowMs, nowMs + Math.ceil(delayMs));
        return { kind: "retry", job, delayMs, status, ...(isUncounted && { isUncounted }), ...traced };
      }
      return { ...givenUp(job, decision.error), ...describeAttempt(attempted, nowMs) };
    }
  }
}

/** Builds the attempt for the job's history; empty if the relay sent no reply and there is no reason to record. */
function describeAttempt({ job, outcome, ms }: Attempted, at: number, next?: number): { readonly attempt?: Attempt } {
  const { relay } = outcome;
  const reply = outcome.reply ?? getReason(outcome);
  if (outcome.kind === "suppressed" || (relay === undefined && reply === undefined)) return {};
  const said = reply === undefined ? {} : { reply: shown(reply, job.recipient) };
  const attempt = {
    at,
    outcome: toAttemptOutcome(outcome, next),
    ...(relay !== undefined && { relay: shown(relay, "") }),
    ...said,
    ...(ms !== undefined && { ms: Math.round(ms) }),
    ...(outcome.kind === "retry" && outcome.waitsFor !== undefined && { for: outcome.waitsFor }),
  };
  return { attempt: next === undefined ? attempt : { ...attempt, next } };
}

function toAttemptOutcome(outcome: Attempted["outcome"], next: number | undefined): Attempt["outcome"] {
  if (outcome.kind === "delivered") return "sent";
  if (outcome.kind === "retry" && outcome.isUncertain) return "uncertain";
  if (next === undefined || outcome.kind !== "retry") return "failed";
  return outcome.isUncounted ? "snooze" : "retry";
}

function getReason(outcome: Attempted["outcome"]): string | undefined {
  if (outcome.kind === "retry") return outcome.why;
  return outcome.kind === "failed" ? outcome.error : undefined;
}

/** Returns one bounded line. Stores that keep it have no recipient in clear. */
function shown(text: string, recipient: string): string {
  const line = text.slice(0, 4 * limits.attemptCharsMax).replace(/[\p{C}\s]+/gu, " ");
  // The pattern costs ten times as much as this check, and almost no reply names the recipient.
  const masked = mayName(line, recipient)
    ? line.replaceAll(new RegExp(RegExp.escape(recipient), "gi"), "(recipient)")
    : line;
  return masked.trim().slice(0, limits.attemptCharsMax).toWellFormed();
}

/** Whether a case-insensitive search could find the recipient. Beyond ASCII a letter may have more than two forms. */
function mayName(line: string, recipient: string): boolean {
  if (recipient === "") return false;
  return /[^ -~]/.test(line) || line.toLowerCase().includes(recipient.toLowerCase());
}

/** Ends a job whose tries never got a clear answer. */
export function givenUp(job: QueuedJob, error: string): Extract<Settlement, { kind: "final" }> {
  const event = { type: "failed", result: { error } } as const;
  return { kind: "final", job, status: "failed", result: { error }, event, isGivenUp: true };
}
