import type { Clock } from "../../domain/clock.ts";
import { isOutage, TransportError } from "../../domain/errors.ts";
import type { EventReader } from "../../domain/jobs/event-store.ts";
import type { JobRecord, KeptContent } from "../../domain/jobs/job.ts";
import type { PayloadStore } from "../../domain/jobs/payload-store.ts";
import type { FrontQueue } from "../../domain/jobs/queue.ts";
import type {
  FailedJob,
  FailedJobs,
  JobContent,
  JobRetries,
  Retry,
  RetryCharges,
  RetryOutcome,
  RetryQueue,
  RetryResult,
} from "../../domain/jobs/retry.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";

export interface RetriesPorts {
  readonly queue: Pick<FrontQueue, "job"> & RetryQueue;
  readonly eventStore: Pick<EventReader, "job"> & FailedJobs;
  readonly payloads: Pick<PayloadStore, "put" | "get">;
  readonly charges: Pick<RetryCharges, "take" | "giveBack">;
  readonly clock: Clock;
}

/** A job, and its content; null: not kept. */
interface FoundFailure {
  readonly job: JobRecord;
  readonly content: KeptContent | null;
}

/** A retry that is ready to be queued. */
interface Prepared {
  readonly retry: Retry;
  readonly isCharged: boolean;
}

/** Jobs that are processed together: their contents are in memory meanwhile. */
const TOGETHER = 32;

/**
 * Retries failed jobs.
 *
 * A1. The queue's data about a job is newer than the event store's; the content comes from whichever has it.
 * A2. A job is charged before it is queued, and refunded if it was certainly not queued; only by the call that charged
 *     it, because another call may have retried the job at the same time. If that is unknown, a sweep settles it, as
 *     after a send whose answer was lost.
 * A3. A large payload is stored before its job is queued, anew if it is still there: the sweep keeps payloads that were
 *     stored a moment ago, and those of jobs that failed and are still in the queue.
 */
export class Retries implements JobRetries {
  constructor(private readonly ports: RetriesPorts) {}

  async retry(tenant: Tenant, jobIds: readonly string[]): Promise<ReadonlyMap<string, RetryOutcome>> {
    const outcomes = new Map<string, RetryOutcome>();
    for (let at = 0; at < jobIds.length; at += TOGETHER) {
      await this.retryPiece(tenant, jobIds.slice(at, at + TOGETHER), outcomes);
    }
    return outcomes;
  }

  async findContent(tenant: Tenant, jobId: string): Promise<JobContent | null> {
    const waiting = await this.ports.queue.waitingContent(tenant, jobId);
    const found = waiting ?? (await this.failureContent(tenant, jobId));
    if (found === null) return null;
    const { channel, payload, stored } = found;
    if (stored === undefined || payload !== "") return { channel, payload };
    const bytes = await this.ports.payloads.get({ tenantId: tenant.tenantId, jobId });
    return bytes === null ? null : { channel, payload: Buffer.from(bytes).toString() };
  }

  private async failureContent(tenant: Tenant, jobId: string) {
    const failure = (await this.failures(tenant, [jobId])).get(jobId);
    return failure?.content ? { ...failure.content, channel: failure.job.channel } : null;
  }

  /** Returns the failed jobs among these, and the content of each. */
  private async failures(tenant: Tenant, jobIds: readonly string[]): Promise<ReadonlyMap<string, FoundFailure>> {
    const { queue, eventStore } = this.ports;
    const queued = new Map<string, JobRecord>();
    for (const job of await Promise.all(jobIds.map((jobId) => queue.job(tenant, jobId)))) {
      if (job !== null) queued.set(job.jobId, job);
    }
    const wanted = jobIds.filter((jobId) => (queued.get(jobId)?.status ?? "failed") === "failed");
    const here = wanted.filter((jobId) => queued.has(jobId));
    const unrecorded = here.length === 0 ? NOTHING : await queue.unrecordedContents(tenant, here);
    const missing = wanted.filter((jobId) => !unrecorded.has(jobId));
    const recorded = missing.length === 0 ? NONE_RECORDED : await eventStore.failedJobs(tenant.tenantId, missing);
    const found = new Map<string, FoundFailure>();
    for (const jobId of wanted) {
      const job = queued.get(jobId) ?? recorded.get(jobId)?.job;
      const content = unrecorded.get(jobId) ?? recorded.get(jobId)?.content ?? null;
      if (job !== undefined) found.set(jobId, { job, content });
    }
    return found;
  }

  private async retryPiece(tenant: Tenant, jobIds: readonly string[], outcomes: Map<string, RetryOutcome>) {
    const found = await this.failures(tenant, jobIds);
    const prepared: Prepared[] = [];
    try {
      for (const jobId of jobIds) {
        const failure = found.get(jobId);
        const ready = failure === undefined ? await this.whyNot(tenant, jobId) : await this.prepare(tenant, failure);
        if ("kind" in ready) outcomes.set(jobId, ready);
        else prepared.push(ready);
      }
    } catch (error) {
      // No job of the piece is queued.
      await Promise.allSettled(prepared.map((one) => this.giveBack(tenant, one)));
      throw error;
    }
    if (prepared.length === 0) return;
    const results = await this.queue(tenant, prepared);
    for (const [at, one] of prepared.entries()) {
      const kind = results[at] ?? "unknown";
      outcomes.set(one.retry.job.jobId, { kind });
      if (kind !== "retried") await this.giveBack(tenant, one);
    }
  }

  private async whyNot(tenant: Tenant, jobId: string): Promise<RetryOutcome> {
    const { queue, eventStore } = this.ports;
    const job = (await queue.job(tenant, jobId)) ?? (await eventStore.job(tenant.tenantId, jobId));
    return { kind: job === null ? "unknown" : "not_failed" };
  }

  private async prepare(tenant: Tenant, { job, content }: FoundFailure): Promise<Prepared | RetryOutcome> {
    const { payloads, charges } = this.ports;
    if (content === null) return { kind: "not_kept" };
    const charge = await charges.take(tenant.tenantId, job, content.payload);
    if (charge.kind === "refused") return charge;
    const isCharged = charge.kind === "taken";
    if (content.stored === undefined || content.payload === "") return { retry: { job, content }, isCharged };
    const stored: Prepared = { retry: { job, content: { ...content, payload: "" } }, isCharged };
    try {
      await payloads.put({ tenantId: tenant.tenantId, jobId: job.jobId }, Buffer.from(content.payload));
    } catch (error) {
      await this.giveBack(tenant, stored);
      throw error;
    }
    return stored;
  }

  private async giveBack({ tenantId }: Tenant, { retry, isCharged }: Prepared): Promise<void> {
    if (isCharged) await this.ports.charges.giveBack(tenantId, retry.job);
  }

  private async queue(tenant: Tenant, prepared: readonly Prepared[]): Promise<readonly RetryResult[]> {
    const { queue, clock } = this.ports;
    const retries = prepared.map(({ retry }) => retry);
    const { queuedJobsMax: jobs, queuedBytesMax: bytes } = tenant.plan;
    // A purge from a moment ago was decided before.
    const purgedMs = tenant.steering?.purgedBefore.values() ?? [];
    const atMs = Math.max(clock.nowMs(), ...purgedMs);
    try {
      return await queue.retry({ tenant, retries, quota: { jobs, bytes }, atMs });
    } catch (error) {
      const isNotQueued = isOutage(error) && !(error instanceof TransportError);
      if (isNotQueued) for (const one of prepared) await this.giveBack(tenant, one);
      throw error;
    }
  }
}

const NOTHING: ReadonlyMap<string, KeptContent> = new Map();
const NONE_RECORDED: ReadonlyMap<string, FailedJob> = new Map();
