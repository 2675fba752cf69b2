import { nextEventId } from "../../src/core/event.ts";
import { isFinal } from "../../src/core/job.ts";
import type { Observation, ObserveResult } from "../../src/core/journal.ts";
import type { TenantRef } from "../../src/core/tenant.ts";
import { bucketOf, publish, type ShardState, type StoredJob, storedBucket, storedJob } from "./memory-journal-shard.ts";

export interface Observing {
  readonly tenant: TenantRef;
  readonly observation: Observation;
  readonly nowMs: number;
}

/** Adds what somebody else says about a job. */
export function observe(shard: ShardState, { tenant, observation, nowMs }: Observing): ObserveResult {
  const { jobId, type, result, suppress, known, whenUnfinished } = observation;
  const stored = storedJob(shard, jobId, nowMs);
  const job: StoredJob | null = stored ?? (known === null ? null : { ...known, isHeldPending: false, entryId: null });
  if (job === null || job.tenantId !== tenant.tenantId) return "unknown";
  if (hasEvent(job, observation)) return "duplicate";
  if (whenUnfinished === "hold" && !isFinal(job.status)) return "early";

  shard.lastEventId = nextEventId(shard.lastEventId, nowMs);
  const event = { eventId: shard.lastEventId, type, result };
  const bucket = storedBucket(shard, bucketOf(jobId), nowMs);
  bucket.jobs.set(jobId, { ...job, events: [...job.events, event] });
  // A job that comes back from the ledger is complete but for this event.
  if (stored !== null) bucket.recorded = (bucket.recorded ?? 0) - 1;
  bucket.expiresMs = null;
  if (suppress !== null && suppress.recipient !== "") {
    const list = shard.suppressed.get(tenant.tenantId) ?? new Map();
    shard.suppressed.set(tenant.tenantId, list.set(suppress.recipient, suppress.reason));
  }
  publish(shard, [{ tenantId: tenant.tenantId, jobId, channel: job.channel, ...event, finished: null }], nowMs);
  return "recorded";
}

/** Clicks count once a link, all else once a job. */
function hasEvent(job: StoredJob, { type, result }: Observation): boolean {
  return job.events.some(
    (event) => event.type === type && (type !== "clicked" || JSON.stringify(event.result) === JSON.stringify(result)),
  );
}
