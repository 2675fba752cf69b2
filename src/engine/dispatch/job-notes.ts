import type { Clock } from "../../domain/clock.ts";
import { FailureLog } from "../../domain/failure-log.ts";
import { isSampled } from "../../domain/ids.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { FailureCause, Outcome } from "../../domain/jobs/outcome.ts";
import type { Settlement } from "../../domain/jobs/queue.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { maskedRecipient, maskedText } from "../../domain/texts/masked.ts";
import { traceInLog } from "../../domain/tracing.ts";

export interface JobNotesOptions {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** The share of jobs whose end gets a line, 0 to 1. */
  readonly logShare: number;
}

type Final = Extract<Settlement, { kind: "final" }>;

/** Logs and counts how jobs end: counts of all, a line for each failure and for a share of the others. */
export class JobNotes {
  private readonly failures: FailureLog;

  constructor(private readonly options: JobNotesOptions) {
    this.failures = new FailureLog(options.telemetry, options.clock);
  }

  /** Notes outcomes that are on disk. `reported`: jobs that ended with success because of a report. */
  landed(settlements: readonly Settlement[], reported: ReadonlySet<string>): void {
    for (const settlement of settlements) {
      const { kind, job } = settlement;
      if (reported.has(job.jobId)) this.succeeded(job);
      else if (kind === "final") this.ended(settlement);
    }
  }

  private succeeded({ tenantId: tenant_id, jobId: job_id, channel }: QueuedJob): void {
    const { telemetry, logShare } = this.options;
    telemetry.count("messages", { channel, outcome: "sent" });
    if (!isSampled(job_id, logShare)) return;
    telemetry.log("info", "a job ended", { tenant_id, job_id, channel, status: "success" });
  }

  /** Notes a try that failed and will be repeated. */
  retried(job: QueuedJob, { why }: Extract<Outcome, { kind: "retry" }>): void {
    const { jobId: job_id, tenantId: tenant_id, channel, attempts, traceparent } = job;
    this.options.telemetry.log("debug", "a try failed", {
      job_id,
      tenant_id,
      channel,
      attempts: attempts + 1,
      error: maskedText(why),
      ...traceInLog(traceparent),
    });
  }

  stop(): void {
    this.failures.stop();
  }

  private ended(settlement: Final): void {
    const { telemetry, logShare } = this.options;
    const { job, status } = settlement;
    const { channel } = job;
    const cause = determineCause(settlement);
    telemetry.count("messages", { channel, outcome: status === "success" ? "sent" : failedAs(settlement, cause) });
    if (status === "failed") {
      telemetry.count("message_failures", { channel, cause });
      this.failures.note(job.tenantId, "a job failed", () => ({
        ...toLogFields(settlement),
        cause,
        error: maskedText(String(settlement.result["error"] ?? "")),
      }));
    } else if (isSampled(job.jobId, logShare)) {
      telemetry.log("info", "a job ended", { tenant_id: job.tenantId, ...toLogFields(settlement), status });
    }
  }
}

function toLogFields({ job, cause }: Final) {
  const { jobId: job_id, channel, recipient, attempts, traceparent } = job;
  const wasTried = job.suppressed === null && (cause === undefined || !UNTRIED.includes(cause));
  const tries = attempts + (wasTried ? 1 : 0);
  return { job_id, channel, recipient: maskedRecipient(recipient), attempts: tries, ...traceInLog(traceparent) };
}

const UNTRIED: readonly FailureCause[] = ["content", "relay_away", "gone", "purged"];

/** Alerts count only each message's first failure: purges, and retries that fail again, follow an operator's action. */
function failedAs({ status, job }: Final, cause: FailureCause): string {
  if (status !== "failed") return status;
  if (cause === "purged") return "purged";
  return job.retriedAtMs === undefined ? "failed" : "failed_again";
}

function determineCause({ cause, isGivenUp }: Final): FailureCause {
  return cause ?? (isGivenUp ? "no_clear_answer" : "refused");
}
