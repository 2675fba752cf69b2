import { nextEventId } from "../../src/core/event.ts";
import { isFinal, type SuppressionReason } from "../../src/core/job.ts";
import type { Observation, ObserveResult } from "../../src/core/journal.ts";
import type { LedgerRow } from "../../src/core/ledger.ts";
import type { TenantRef } from "../../src/core/tenant.ts";
import { bucketOf, publish, type ShardState, type StoredJob, storedBucket, storedJob } from "./memory-journal-shard.ts";

export interface Sighting {
  readonly tenant: TenantRef;
  readonly observation: Observation;
}

/** Adds what somebody else says about jobs of one shard, as one entry of its outbox. */
export function observe(shard: ShardState, sightings: readonly Sighting[], nowMs: number): ObserveResult[] {
  const rows: LedgerRow[] = [];
  const results = sightings.map((sighting) => {
    const answer = observeOne(shard, sighting, nowMs);
    if (typeof answer === "string") return answer;
    rows.push(answer);
    return "recorded";
  });
  publish(shard, rows, nowMs);
  return results;
}

/** The event's row, or why there is none. */
function observeOne(shard: ShardState, { tenant, observation }: Sighting, nowMs: number): LedgerRow | ObserveResult {
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
    const list = shard.suppressed.get(tenant.tenantId) ?? new Map<string, SuppressionReason>();
    shard.suppressed.set(tenant.tenantId, list.set(suppress.recipient, suppress.reason));
  }
  return { tenantId: tenant.tenantId, jobId, channel: job.channel, ...event, finished: null };
}

/** Clicks count once a link, all else once a job. */
function hasEvent(job: StoredJob, { type, result }: Observation): boolean {
  return job.events.some(
    (event) => event.type === type && (type !== "clicked" || JSON.stringify(event.result) === JSON.stringify(result)),
  );
}
