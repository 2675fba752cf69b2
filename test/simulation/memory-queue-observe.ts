import { isByReader } from "../../src/domain/jobs/event.ts";
import type { StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import { isFinal, type SuppressionReason } from "../../src/domain/jobs/job.ts";
import type { Observation, ObserveResult } from "../../src/domain/jobs/queue.ts";
import type { TenantRef } from "../../src/domain/tenants/tenant.ts";
import {
  agreedTimeMs,
  count,
  hasEvent,
  hasReport,
  newEvent,
  payloadBytes,
  publish,
  type ShardState,
  type StoredJob,
  storedJob,
  storedOf,
  withKept,
} from "./memory-queue-shard.ts";

export interface Sighting {
  readonly tenant: TenantRef;
  readonly observation: Observation;
}

/** Adds what somebody else says about jobs of one shard, as one entry of its outbox. */
export function observe(shard: ShardState, sightings: readonly Sighting[], nowMs: number): ObserveResult[] {
  const rows: StoredEventRow[] = [];
  const back: string[] = [];
  const results = sightings.map((sighting) => {
    const { jobId } = sighting.observation;
    const wasHere = shard.jobs.has(jobId);
    const answer = observeOne(shard, sighting, nowMs);
    rows.push(...answer.rows);
    if (!wasHere && answer.result === "recorded") back.push(jobId);
    if (answer.result === "recorded" || answer.result === "kept") suppress(shard, sighting);
    return answer.result;
  });
  publish(shard, rows, nowMs);
  // A job that comes back from the event store leaves again.
  if (back.length > 0) shard.leaving.push({ sinceMs: agreedTimeMs(shard, nowMs), jobs: back });
  return results;
}

interface Answer {
  readonly result: ObserveResult;
  readonly rows: readonly StoredEventRow[];
}

function observeOne(shard: ShardState, { tenant, observation }: Sighting, nowMs: number): Answer {
  const { jobId, type, known } = observation;
  const none = (result: ObserveResult): Answer => ({ result, rows: [] });
  const job = storedJob(shard, jobId) ?? (known === null ? null : storedOf(known));
  if (job === null || job.tenantId !== tenant.tenantId) return none("unknown");
  const isEarly = !isFinal(job.status);
  if (hasEvent(job, observation) || (isEarly && hasReport(job.kept, observation))) return none("duplicate");
  if (isEarly && (!shard.parked.has(jobId) || isByReader(type))) {
    shard.jobs.set(jobId, { ...job, kept: [...job.kept, { type, result: observation.result }] });
    return none("kept");
  }
  return { result: "recorded", rows: add(shard, { job, isEarly }, observation, nowMs) };
}

interface Addition {
  readonly job: StoredJob;
  /** The job waits for another try, and ends with this. */
  readonly isEarly: boolean;
}

/** The rows of the report, and before it of the job's end where it is what ends it. */
function add(
  shard: ShardState,
  addition: Addition,
  { jobId, type, result }: Observation,
  nowMs: number,
): StoredEventRow[] {
  const { isEarly } = addition;
  let { job } = addition;
  const rows: StoredEventRow[] = [];
  const { tenantId, channel } = job;
  if (isEarly) {
    const entry = shard.parked.get(jobId)?.entry;
    const { template, recipient = "", tags } = entry ?? {};
    if (entry !== undefined) count(shard, tenantId, -1, payloadBytes(entry));
    shard.parked.delete(jobId);
    shard.later.delete(jobId);
    const sent = newEvent(shard, { type: "sent", result: {} }, nowMs);
    const attempts = Math.max(1, job.attempts);
    const ended = { status: "success", isHeldPending: false, attempts, entryId: null, result: {} } as const;
    const { kept } = job;
    const told = withKept(shard, { ended: { ...job, ...ended, events: [...job.events, sent] }, jobId, kept }, nowMs);
    job = told.job;
    const finished = {
      status: ended.status,
      attempts,
      result: {},
      ...(template !== undefined && { template }),
      ...(recipient !== "" && { recipient }),
      ...(job.tries !== undefined && { tries: job.tries }),
      ...(job.life !== undefined && { began: job.life.began }),
      ...(tags !== undefined && { tags }),
    };
    rows.push({ tenantId, jobId, channel, ...sent, finished }, ...told.rows);
  }
  if (!isEarly || type !== "sent") {
    const event = newEvent(shard, { type, result }, nowMs);
    job = { ...job, events: [...job.events, event] };
    rows.push({ tenantId, jobId, channel, ...event, finished: null });
  }
  shard.jobs.set(jobId, job);
  return rows;
}

function suppress(shard: ShardState, { tenant: { tenantId }, observation: { suppress: who } }: Sighting): void {
  if (who === null || who.recipient === "") return;
  const list = shard.suppressed.get(tenantId) ?? new Map<string, SuppressionReason>();
  shard.suppressed.set(tenantId, list.set(who.recipient, who.reason));
}
