import { type Clock, sleep } from "../core/clock.ts";
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
 * W3. Statuses of one job reach the journal in the order in which they came, those that were held first. W4. Names of
 *     tenants that somebody made up keep nobody from working: they are looked up one by one.
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
    const strangers = await this.strangersIn(statuses);
    const jobOf = ({ job, messageId }: WhatsappStatus) => job ?? byId.get(messageId) ?? null;
    const known = new Map(
      statuses.flatMap((status) => {
        const job = jobOf(status);
        return job === null ? [] : [[status.messageId, job] as const];
      }),
    );
    await allEnded(Array.from(known, ([messageId, job]) => this.early.release(messageId, job)));
    await allEnded(
      statuses.map(async (status) => {
        const job = jobOf(status);
        if (job === null) {
          if (!this.early.hold(status)) this.count(status, "dropped");
        } else if (strangers.has(job.tenantId)) this.count(status, "unknown");
        else await this.record(status, job);
      }),
    );
  }

  /**
   * The tenants that are named and do not exist. A registry in this process holds the event loop while it looks, so
   * everybody else has a turn after each that is not remembered.
   */
  private async strangersIn(statuses: readonly WhatsappStatus[]): Promise<ReadonlySet<string>> {
    const { directory, clock } = this.ports;
    const strangers = new Set<string>();
    for (const tenantId of new Set(statuses.flatMap(({ job }) => job?.tenantId ?? []))) {
      const found = directory.byId(tenantId);
      if ((await found) === null) strangers.add(tenantId);
      if (found instanceof Promise) await sleep(clock, 0);
    }
    return strangers;
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
    this.count(status, await observeReport(this.ports, report));
  }

  private count({ type }: WhatsappStatus, result: string): void {
    this.ports.telemetry.count("delivery_reports", { type, result });
  }
}

/** All are waited for: none must be under way when the provider hears that it has to repeat them. */
async function allEnded(works: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(works)) if (outcome.status === "rejected") throw outcome.reason;
}
