import { FailureLog } from "../../../domain/failure-log.ts";
import { type ObserveReportPorts, observeReport } from "../../../domain/jobs/observe-report.ts";
import type { JobAddress, ProviderReferences } from "../../../domain/jobs/queue.ts";
import type { RuntimePorts } from "../../../domain/runtime-ports.ts";
import { maskedText } from "../../../domain/texts/masked.ts";
import { chatLimits } from "../limits.ts";
import type { WhatsappPlatform } from "../platform.ts";
import type { CallbackReader } from "./callback-keys.ts";
import { EarlyStatuses } from "./early-statuses.ts";
import type { WhatsappStatus } from "./webhook.ts";

export interface WhatsappStatusesPorts extends ObserveReportPorts, RuntimePorts {
  readonly references: ProviderReferences;
  readonly callbacks: CallbackReader;
  readonly platform: WhatsappPlatform;
}

/**
 * Adds the chat provider's statuses to the delivery history of their jobs. A message identifies its job by callback
 * data that our channel signed; otherwise by its id, once the queue has the reply to the call that sent it. The
 * provider's signature proves only that some number sent something: the same account serves many.
 *
 * W1. `take` resolves once every status of a known job is in the queue: replying to the provider after that loses none.
 * W2. A status of an unknown message is kept in memory briefly (`EarlyStatuses`), and never stored.
 * W3. Statuses of one job reach the queue in order of arrival, early ones first.
 * W4. Only chat jobs are changed: no other job is signed or has a reference.
 * W5. If the call names a number, a status changes a job only when that number sent the job's message: the signed
 *     number, or else the tenant's own or the platform's.
 *
 * Unsigned callback data, as sent by releases that did not sign yet, is not trusted: anyone can write it. Such messages
 * are tracked by their ids for as long as those are kept. If the reply to one was lost during the upgrade, its job
 * cannot be identified, and the message is sent again as if no status had arrived. Conversely, such a release tracks
 * signed messages by their ids.
 */
export class WhatsappStatuses {
  private readonly early: EarlyStatuses;
  private readonly failures: FailureLog;

  constructor(private readonly ports: WhatsappStatusesPorts) {
    const { references, clock, random, telemetry } = ports;
    const onKnown = (status: WhatsappStatus, job: JobAddress) => this.record(status, job);
    this.failures = new FailureLog(telemetry, clock);
    this.early = new EarlyStatuses({ references, clock, random, telemetry, onKnown });
  }

  /** Statuses waiting for their message to become known. */
  get held(): number {
    return this.early.size;
  }

  /** Records statuses. Rejects if a store is unavailable; a repeated call skips statuses that were already recorded. */
  async take(statuses: readonly WhatsappStatus[]): Promise<void> {
    for (let at = 0; at < statuses.length; at += chatLimits.webhookStatusesMax) {
      await this.takeSome(statuses.slice(at, at + chatLimits.webhookStatusesMax));
    }
  }

  /** Tries the early statuses once more and drops the rest. Safe to call twice. */
  async stop(): Promise<void> {
    await this.early.stop();
    this.failures.stop();
  }

  private async takeSome(statuses: readonly WhatsappStatus[]): Promise<void> {
    const signed = new Map(statuses.map((status) => [status, this.readSignedJob(status)] as const));
    const byId = await this.jobsById(statuses.filter((status) => signed.get(status) === null));
    const findJob = (status: WhatsappStatus) => signed.get(status) ?? byId.get(status.messageId) ?? null;
    const known = new Map(
      statuses.flatMap((status) => {
        const job = findJob(status);
        return job === null ? [] : [[status.messageId, job] as const];
      }),
    );
    await allEnded(Array.from(known, ([messageId, job]) => this.early.release(messageId, job)));
    await allEnded(
      statuses.map(async (status) => {
        const job = findJob(status);
        if (job !== null) await this.record(status, job);
        else if (!this.early.hold(status)) this.count(status, "dropped");
      }),
    );
  }

  /** Returns the job that our signature names; null if the message has no valid one, or another number reports it. */
  private readSignedJob({ callbackData, phoneNumberId }: WhatsappStatus): JobAddress | null {
    const message = callbackData === null ? null : this.ports.callbacks.read(callbackData);
    return message !== null && (phoneNumberId ?? message.phoneNumberId) === message.phoneNumberId ? message : null;
  }

  /** Finds the jobs of messages without signed callback data. */
  private async jobsById(statuses: readonly WhatsappStatus[]): Promise<ReadonlyMap<string, JobAddress>> {
    const ids = [...new Set(statuses.map(({ messageId }) => messageId))];
    if (ids.length === 0) return new Map();
    const jobs = await this.ports.references.findReferencedJobs(ids);
    return new Map(ids.flatMap((id, i) => (jobs[i] ? [[id, jobs[i]] as const] : [])));
  }

  private async record(status: WhatsappStatus, { tenantId, jobId }: JobAddress): Promise<void> {
    const { type, result, occurredAtMs } = status;
    if (this.readSignedJob(status) === null && (await this.isForeign(status, tenantId))) {
      this.count(status, "foreign");
      return;
    }
    const time = occurredAtMs === null ? {} : { occurredAtMs };
    const report = { tenantId, jobId, type, result, ...time, suppressRecipient: null };
    const answer = await observeReport(this.ports, report);
    this.count(status, answer);
    if (answer !== "recorded" && answer !== "kept") return;
    const outcome = type === "failed" ? "failed_later" : type;
    this.ports.telemetry.count("messages", { channel: "whatsapp", outcome });
    if (type !== "failed") return;
    this.failures.note(tenantId, "a message failed after its hand-over", () => {
      return { job_id: jobId, channel: "whatsapp", type, error: maskedText(String(result["error"] ?? "")) };
    });
  }

  /** Whether the status comes from a number that the tenant does not use. */
  private async isForeign({ phoneNumberId }: WhatsappStatus, tenantId: string): Promise<boolean> {
    const { directory, platform } = this.ports;
    if (phoneNumberId === null) return false;
    const tenant = await directory.byId(tenantId);
    const senders = [tenant?.whatsapp.sender, platform.whatsapp];
    return !senders.some((sender) => sender?.phoneNumberId === phoneNumberId);
  }

  private count({ type }: WhatsappStatus, result: string): void {
    this.ports.telemetry.count("delivery_reports", { type, result });
  }
}

/** Waits for all of them: none may be in flight when the provider is asked to repeat them. */
async function allEnded(works: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(works)) if (outcome.status === "rejected") throw outcome.reason;
}
