import { fallbackId } from "../../domain/jobs/fallback.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import { type Idempotency, toQueueQuota } from "../../domain/jobs/queue.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { Exchange } from "../exchange.ts";
import type { FrontDoor } from "../front-door.ts";
import { acceptJob } from "./accept-job.ts";
import type { Acceptance, PlannedFallback } from "./acceptance.ts";
import { answerAccepted, keyConflict, pendingJob, REPLAYED } from "./accepted-answer.ts";
import { shownFallbacks, toFallback } from "./fallbacks.ts";

interface WithFallbacks {
  readonly tenant: Tenant;
  readonly channel: ChannelName;
  /** Parsed. */
  readonly body: unknown;
  readonly idempotency: Idempotency | null;
  readonly acceptance: Acceptance & { readonly ok: true };
  readonly fallbacks: readonly PlannedFallback[];
}

/**
 * Queues a message and its fallbacks. The request has been counted. Throws an `ApiError` 422, 429 or 500.
 *
 * The fallbacks come first: one whose message is not queued in the end, because it was refused or this process died, is never
 * sent. The message alone has the Idempotency-Key, so a repeat after such an end queues everything anew.
 */
export async function queueWithFallbacks(door: FrontDoor, exchange: Exchange, send: WithFallbacks): Promise<Response> {
  const { tenant, channel, body, idempotency, acceptance, fallbacks } = send;
  const before = idempotency === null ? null : await door.ports.queue.queuedUnder(tenant, idempotency);
  if (before !== null && !before.isSame) throw keyConflict();
  if (before !== null) return exchange.jsonText(202, pendingJob(before.jobId, body), REPLAYED);

  const jobId = door.ports.jobIds.next();
  exchange.queues(jobId);
  const common = { tenant, requestsPerMinute: null, exchange };
  const quota = toQueueQuota(tenant.plan);
  const queued: string[] = [];
  const withdraw = () => withdrawAll(door, tenant, queued);
  for (const [at, { dueMs }] of shownFallbacks(jobId, body).entries()) {
    const fallback = fallbacks[at];
    if (fallback === undefined) break;
    const id = fallbackId(jobId, at + 1);
    const what = { ...fallback.accepted.job, dueMs, fallback: toFallback(jobId, fallback, at + 1) };
    // Pending until it is known to be needed.
    const job = {
      jobId: id,
      channel: fallback.channel,
      ...what,
      needsScreening: true,
      quota,
      idempotency: null,
    } as const;
    const { contents } = fallback.accepted;
    const result = await acceptJob(door, { ...common, job, ...(contents && { contents }) }).catch(async (error) => {
      await withdraw();
      throw error;
    });
    if (result.kind !== "accepted") {
      await withdraw();
      return answerAccepted(door, exchange, tenant, result);
    }
    queued.push(id);
  }
  const job = { jobId, channel, ...acceptance.job, quota, idempotency };
  const { contents } = acceptance;
  const result = await acceptJob(door, { ...common, job, ...(contents && { contents }), onNotQueued: withdraw });
  if (result.kind === "accepted") return exchange.jsonText(202, pendingJob(jobId, body));
  await withdraw();
  // Another call with the same key was faster.
  if (result.kind === "replayed") return exchange.jsonText(202, pendingJob(result.jobId, body), REPLAYED);
  return answerAccepted(door, exchange, tenant, result);
}

/** Fallbacks that this misses are not sent either: their message was never queued. */
async function withdrawAll({ ports }: FrontDoor, tenant: Tenant, jobIds: readonly string[]): Promise<void> {
  const withdrawn = await Promise.allSettled(jobIds.map((jobId) => ports.schedule.cancel(tenant, jobId)));
  for (const each of withdrawn) {
    if (each.status === "fulfilled") continue;
    const fields = { tenant_id: tenant.tenantId, error: String(each.reason) };
    ports.telemetry.log("warn", "a fallback without its message is left to its turn", fields);
  }
}
