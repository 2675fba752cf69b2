import { Counts } from "../../domain/counts.ts";
import type { DeliveryReport, Engagement } from "../../domain/jobs/report.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { engineLimits } from "../limits.ts";

export interface EngagementsPorts {
  /** Records the report, and repeats it until it is recorded. */
  readonly reports: { take(report: DeliveryReport): Promise<void> };
  readonly telemetry: Telemetry;
}

/** One tenant's readers get one share of the pending actions, so that other tenants keep theirs in an outage. */
const TENANT_SHARES = 4;

/**
 * Records opens and clicks after the HTTP answer that reveals them, so that readers do not wait.
 *
 * E1. At most `engagementsPendingMax` are pending, a quarter of them of one tenant; further ones are counted and dropped.
 * E2. The same action, repeated while it is being recorded, is not recorded twice concurrently.
 */
export class Engagements {
  private readonly pending = new Set<string>();
  private readonly pendingOf = new Counts();

  constructor(private readonly ports: EngagementsPorts) {}

  /** Returns at once. */
  note({ type, tenantId, jobId, url, by }: Engagement): void {
    const { reports, telemetry } = this.ports;
    const name = `${type} ${by?.isMachine === true} ${tenantId} ${jobId} ${url ?? ""}`;
    if (this.pending.has(name)) return;
    const { engagementsPendingMax: most } = engineLimits;
    if (this.pending.size >= most || this.pendingOf.of(tenantId) >= most / TENANT_SHARES)
      return telemetry.count("engagements_dropped", { type });
    this.pending.add(name);
    this.pendingOf.add(tenantId);
    // In the order in which the queue reads it.
    const result = {
      ...(url !== null && { url }),
      ...(by?.isMachine === true && { machine: true }),
      ...(by !== null && { by: by.name }),
    };
    // Never rejects.
    void reports
      .take({ tenantId, jobId, type, result, suppressRecipient: null })
      .then(() => this.forget(name, tenantId));
  }

  private forget(name: string, tenantId: string): void {
    this.pending.delete(name);
    this.pendingOf.remove(tenantId);
  }
}
