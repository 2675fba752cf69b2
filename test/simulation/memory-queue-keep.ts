import type { StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import type { KeptContent, QueuedJob } from "../../src/domain/jobs/job.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import { alive, payloadBytes, type QueueEntry, type ShardState } from "./memory-queue-shard.ts";

interface Failing {
  readonly job: QueuedJob;
  /** Its entry, where it is. */
  readonly found: QueueEntry | null;
  readonly nowMs: number;
}

/** The content of a job that failed, if it is known here and there is room for it. */
export function keepContent(
  shard: ShardState,
  { job, found, nowMs }: Failing,
  settlements: number,
): { readonly kept?: KeptContent } {
  if (found === null || found.jobId !== job.jobId) return {};
  const { recipient, needsScreening, template, payload, stored, traceparent, tags, topic, dueMs, fallback } = found;
  if (!hasRoom(shard, { tenantId: job.tenantId, bytes: payloadBytes(found), nowMs })) return {};
  const kept = {
    recipient,
    ...(needsScreening && { needsScreening }),
    ...(template !== undefined && { template }),
    payload,
    ...(stored !== undefined && { stored }),
    ...(traceparent !== undefined && { traceparent }),
    ...(tags !== undefined && { tags }),
    ...(topic !== undefined && { topic }),
    ...(dueMs !== undefined && { dueMs }),
    ...(fallback !== undefined && { fallback }),
    settlements,
  };
  return { kept };
}

interface Content {
  readonly tenantId: string;
  readonly bytes: number;
  readonly nowMs: number;
}

function hasRoom({ keeping, kept }: ShardState, { tenantId, bytes, nowMs }: Content): boolean {
  const { keptBytesMax, keptOutboxBytesMax, keptDayBytesMax, keptDayMs } = engineLimits;
  const all = [...keeping.values()].reduce((sum, one) => sum + one, 0);
  const own = keeping.get(tenantId) ?? 0;
  const today = alive(kept.get(tenantId), nowMs) ?? { value: 0, expiresMs: nowMs + keptDayMs };
  if (bytes > keptBytesMax || own + bytes > keptOutboxBytesMax - all - bytes || today.value + bytes > keptDayBytesMax)
    return false;
  if (bytes === 0) return true;
  keeping.set(tenantId, own + bytes);
  kept.set(tenantId, { value: today.value + bytes, expiresMs: today.expiresMs });
  return true;
}

/** Contents that have left the outbox make room for others. */
export function forgetContents({ keeping, outbox }: ShardState, rows: readonly StoredEventRow[]): void {
  const contents = rows.flatMap(({ tenantId, finished }) => {
    return finished?.kept === undefined ? [] : [{ tenantId, bytes: payloadBytes(finished.kept) }];
  });
  if (contents.length === 0) return;
  for (const { tenantId, bytes } of contents) {
    const left = (keeping.get(tenantId) ?? 0) - bytes;
    if (left > 0) keeping.set(tenantId, left);
    else keeping.delete(tenantId);
  }
  if (outbox.entries.size === 0) keeping.clear();
}
