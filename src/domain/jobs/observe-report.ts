import { isJobId } from "../ids.ts";
import type { TenantDirectory } from "../tenants/tenant.ts";
import type { EventReader } from "./event-store.ts";
import type { JobRecord } from "./job.ts";
import type { FrontQueue, ObserveResult } from "./queue.ts";
import type { DeliveryReport } from "./report.ts";

export interface ObserveReportPorts {
  readonly queue: Pick<FrontQueue, "observe">;
  readonly directory: TenantDirectory;
  /** Holds jobs that have left the queue. */
  readonly eventStore: Pick<EventReader, "job">;
}

/**
 * Adds a report to its job's history, whether the job is in the queue or in the event store. Rejects when a store is
 * away.
 */
export async function observeReport(
  { queue, directory, eventStore }: ObserveReportPorts,
  report: DeliveryReport,
): Promise<ObserveResult> {
  const { tenantId, jobId, type, result, occurredAtMs, suppressRecipient } = report;
  if (!isJobId(jobId)) return "unknown";
  const tenant = await directory.byId(tenantId);
  if (tenant === null) return "unknown";
  const suppress =
    suppressRecipient === null ? null : { recipient: suppressRecipient, reason: toSuppressionReason(report) };
  const seen = { jobId, type, result, ...(occurredAtMs !== undefined && { occurredAtMs }), suppress };
  const observe = (known: JobRecord | null) => queue.observe(tenant, { ...seen, known });
  const answer = await observe(null);
  if (answer !== "unknown") return answer;
  const known = await eventStore.job(tenantId, jobId);
  return known === null ? "unknown" : observe(known);
}

function toSuppressionReason({ type }: DeliveryReport): "bounced" | "complained" {
  return type === "complained" ? "complained" : "bounced";
}
