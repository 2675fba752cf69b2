import { type Clock, sleep } from "../core/clock.ts";
import { isOutage } from "../core/errors.ts";
import { isJobId } from "../core/ids.ts";
import type { JobRecord } from "../core/job.ts";
import type { FrontJournal, ObserveResult } from "../core/journal.ts";
import type { LedgerReader } from "../core/ledger.ts";
import { limits } from "../core/limits.ts";
import type { DeliveryReport } from "../core/report.ts";
import type { Telemetry } from "../core/telemetry.ts";
import type { TenantDirectory } from "../core/tenant.ts";

export interface DeliveryReportsPorts {
  readonly journal: Pick<FrontJournal, "observe">;
  readonly directory: TenantDirectory;
  /** Where jobs are that have left the journal. */
  readonly ledger: LedgerReader;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Takes what an MTA or a provider says about a message, and adds it to its job's history.
 *
 * D1. A report is repeated until the journal has it, or `stop`. D2. A report that overtakes our own note of the
 * hand-over waits for it, for a while: the hand-over may also have ended without an answer.
 */
export class DeliveryReports {
  private readonly stopping = new AbortController();
  private readonly underWay = new Set<Promise<unknown>>();

  constructor(private readonly ports: DeliveryReportsPorts) {}

  /** Never rejects. Resolves when the report is in the journal or is known to belong to no job. */
  async take(report: DeliveryReport): Promise<void> {
    const taking = this.recordUntilKnown(report);
    this.underWay.add(taking);
    const result = await taking;
    this.underWay.delete(taking);
    this.ports.telemetry.count("delivery_reports", { type: report.type, result });
  }

  /** Takes no more time for what could not be recorded yet. Resolves when nothing is under way. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.underWay);
  }

  private async recordUntilKnown(report: DeliveryReport): Promise<ObserveResult | "given up"> {
    const { clock, telemetry } = this.ports;
    const holdUntilMs = clock.monotonicMs() + limits.reportHoldMs;
    for (let waitMs = 10; ; waitMs = Math.min(2 * waitMs, limits.journalRetryMs)) {
      try {
        const result = await this.record(report, clock.monotonicMs() < holdUntilMs ? "hold" : "record");
        if (result !== "early") return result;
      } catch (error) {
        const expected = isOutage(error);
        telemetry.log(expected ? "warn" : "error", "a report was not recorded and is repeated", {
          error: String(error),
        });
      }
      if (this.stopping.signal.aborted) return "given up";
      await sleep(clock, waitMs, this.stopping.signal);
    }
  }

  private async record(report: DeliveryReport, whenUnfinished: "hold" | "record"): Promise<ObserveResult> {
    const { journal, directory, ledger } = this.ports;
    const { tenantId, jobId, type, result, suppressRecipient } = report;
    if (!isJobId(jobId)) return "unknown";
    const tenant = await directory.byId(tenantId);
    if (tenant === null) return "unknown";
    const suppress = suppressRecipient === null ? null : { recipient: suppressRecipient, reason: reasonOf(report) };
    const observe = (known: JobRecord | null) =>
      journal.observe(tenant, { jobId, type, result, suppress, known, whenUnfinished });
    const answer = await observe(null);
    if (answer !== "unknown") return answer;
    const known = await ledger.job(tenantId, jobId);
    return known === null ? "unknown" : observe(known);
  }
}

function reasonOf({ type }: DeliveryReport): "bounced" | "complained" {
  return type === "complained" ? "complained" : "bounced";
}
