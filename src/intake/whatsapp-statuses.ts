import type { Clock } from "../core/clock.ts";
import type { JobAddress, ProviderReferences } from "../core/journal.ts";
import { limits } from "../core/limits.ts";
import type { Telemetry } from "../core/telemetry.ts";
import { EarlyStatuses } from "./early-statuses.ts";
import { type ObserveReportPorts, observeReport } from "./observe-report.ts";
import type { WhatsappStatus } from "./whatsapp-webhook.ts";

export interface WhatsappStatusesPorts extends ObserveReportPorts {
  readonly references: ProviderReferences;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Adds the chat provider's statuses to the history of their jobs. A message says itself which job it is of, where our
 * channel sent it; otherwise its id does, once the answer to the call that sent it is in the journal.
 *
 * W1. `take` resolves when every status of a known job is in the journal: who answers the provider after that has lost
 *     none. W2. A status whose message is not known is held in memory for a moment (`EarlyStatuses`), and stored nowhere.
 * W3. Statuses of one job reach the journal in the order in which they came.
 */
export class WhatsappStatuses {
  private readonly early: EarlyStatuses;

  constructor(private readonly ports: WhatsappStatusesPorts) {
    const { references, clock, telemetry } = ports;
    const onKnown = (status: WhatsappStatus, job: JobAddress) => this.record(status, job);
    this.early = new EarlyStatuses({ references, clock, telemetry, onKnown });
  }

  /** Statuses that wait for their message to become known. */
  get held(): number {
    return this.early.size;
  }

  /** Rejects when a store is away; what was recorded by then is not recorded twice when all is repeated. */
  async take(statuses: readonly WhatsappStatus[]): Promise<void> {
    for (let at = 0; at < statuses.length; at += limits.webhookStatusesMax) {
      await this.takeSome(statuses.slice(at, at + limits.webhookStatusesMax));
    }
  }

  /** Looks once more for what is held, and drops the rest. Safe to repeat. */
  stop(): Promise<void> {
    return this.early.stop();
  }

  private async takeSome(statuses: readonly WhatsappStatus[]): Promise<void> {
    const byId = await this.jobsById(statuses);
    const outcomes = await Promise.allSettled(
      statuses.map(async (status) => {
        const job = status.job ?? byId.get(status.messageId) ?? null;
        if (job !== null) return this.record(status, job);
        if (!this.early.hold(status)) this.count(status, "dropped");
      }),
    );
    // All are waited for: none must be under way when the provider hears that it has to repeat them.
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  /** The jobs of messages that do not say it themselves. */
  private async jobsById(statuses: readonly WhatsappStatus[]): Promise<ReadonlyMap<string, JobAddress>> {
    const ids = [...new Set(statuses.flatMap(({ job, messageId }) => (job === null ? [messageId] : [])))];
    if (ids.length === 0) return new Map();
    const jobs = await this.ports.references.jobsOf(ids);
    return new Map(ids.flatMap((id, i) => (jobs[i] ? [[id, jobs[i]] as const] : [])));
  }

  private async record(status: WhatsappStatus, { tenantId, jobId }: JobAddress): Promise<void> {
    const { type, result } = status;
    const report = { tenantId, jobId, type, result, suppressRecipient: null };
    this.count(status, await observeReport(this.ports, report, "keep"));
  }

  private count({ type }: WhatsappStatus, result: string): void {
    this.ports.telemetry.count("delivery_reports", { type, result });
  }
}
