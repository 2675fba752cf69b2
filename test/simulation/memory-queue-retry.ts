import type { Retry, RetryCall, RetryResult } from "../../src/domain/jobs/retry.ts";
import { SETTLEMENTS_PER_LIFE } from "../../src/domain/jobs/retry.ts";
import {
  count,
  enqueue,
  nextIdOf,
  payloadBytes,
  type ShardState,
  type StoredJob,
  storedJob,
  storedOf,
  tenantQueueName,
} from "./memory-queue-shard.ts";

export interface Retrying extends RetryCall {
  /** An earlier try of the call may have taken effect. */
  readonly isRepeat: boolean;
  readonly nowMs: number;
}

/** Queues failed jobs again. Calls `hint` when a tenant queue becomes ready. */
export function retry(shard: ShardState, retrying: Retrying, hint: () => void): RetryResult[] {
  let isNews = false;
  const results = retrying.retries.map((one): RetryResult => {
    const { jobId } = one.job;
    const stored = storedJob(shard, jobId) ?? storedOf(one.job);
    const refusal = refusalOf(shard, retrying, one, stored);
    if (refusal !== null) return refusal;
    isNews = queue(shard, retrying, one, stored) || isNews;
    return "retried";
  });
  if (isNews) hint();
  return results;
}

function refusalOf(shard: ShardState, call: Retrying, { job, content }: Retry, stored: StoredJob): RetryResult | null {
  const { tenant, quota, isRepeat } = call;
  if (stored.tenantId !== tenant.tenantId) return "unknown";
  if ((stored.life?.began ?? 0) !== (job.began ?? 0)) return isRepeat ? "retried" : "not_failed";
  if (stored.status !== "failed") return "not_failed";
  const { jobs, bytes } = shard.load.get(tenant.tenantId) ?? { jobs: 0, bytes: 0 };
  if (quota !== undefined && jobs >= quota.jobs) return "jobs";
  return quota !== undefined && bytes + payloadBytes(content) > quota.bytes ? "bytes" : null;
}

/** Whether its tenant queue was not known to be ready. */
function queue(
  shard: ShardState,
  { tenant, atMs, nowMs }: Retrying,
  { job, content }: Retry,
  stored: StoredJob,
): boolean {
  const { jobId, channel } = job;
  const { settlements, ...entry } = content;
  const life = Math.floor(Math.max(settlements, stored.attempts + stored.waits) / SETTLEMENTS_PER_LIFE) + 1;
  const counted = { attempts: 0, waits: life * SETTLEMENTS_PER_LIFE };
  const name = tenantQueueName({ tenantId: tenant.tenantId, channel });
  const entryId = enqueue(shard, name, { ...entry, ...counted, jobId, channel }, nowMs);
  shard.lastEventId = nextIdOf(shard, nowMs);
  count(shard, tenant.tenantId, 1, payloadBytes(content));
  shard.jobs.set(jobId, {
    ...stored,
    ...counted,
    status: "pending",
    isHeldPending: content.needsScreening === true,
    entryId,
    result: null,
    life: { began: shard.lastEventId, atMs },
  });
  const isNews = !shard.ready.has(name);
  shard.ready.add(name);
  return isNews;
}
