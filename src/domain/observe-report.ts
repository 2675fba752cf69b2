import type { LedgerReader } from "./event-store.ts";
import { isJobId } from "./ids.ts";
import type { JobRecord } from "./job.ts";
import type { FrontJournal, ObserveResult } from "./queue.ts";
import type { DeliveryReport } from "./report.ts";
import type { TenantDirectory } from "./tenant.ts";

export interface ObserveReportPorts {
  readonly journal: Pick<FrontJournal, "observe">;
  readonly directory: TenantDirectory;
  /** Where jobs are that have left the journal. */
  readonly ledger: Pick<LedgerReader, "job">;
}

/** Adds a report to its job's history, wherever that is by now. Rejects when a store is away. */
export async function observeReport(
  { journal, directory, ledger }: ObserveReportPorts,
  report: DeliveryReport,
): Promise<ObserveResult> {
  const { tenantId, jobId, type, result, suppressRecipient } = report;
  if (!isJobId(jobId)) return "unknown";
  const tenant = await directory.byId(tenantId);
  if (tenant === null) return "unknown";
  const suppress = suppressRecipient === null ? null : { recipient: suppressRecipient, reason: reasonOf(report) };
  const observe = (known: JobRecord | null) => journal.observe(tenant, { jobId, type, result, suppress, known });
  const answer = await observe(null);
  if (answer !== "unknown") return answer;
  const known = await ledger.job(tenantId, jobId);
  return known === null ? "unknown" : observe(known);
}

function reasonOf({ type }: DeliveryReport): "bounced" | "complained" {
  return type === "complained" ? "complained" : "bounced";
}
