import type { CancelResult, RescheduleResult } from "../../../domain/jobs/schedule.ts";
import type { TenantRef } from "../../../domain/tenants/tenant.ts";
import type { RedisConnection } from "../connection.ts";
import { CANCEL_CHANNEL, shardPrefix } from "../keys.ts";
import { Script } from "../script.ts";
import cancelLua from "./cancel.lua" with { type: "text" };
import scheduleLua from "./schedule.lua" with { type: "text" };

/** Both run even when Redis is full: one adds no data, and the other frees memory. */
const rescheduling = new Script(scheduleLua, "run", {
  MOVED: "moved" satisfies RescheduleResult,
  BEGUN: "begun" satisfies RescheduleResult,
  ENDED: "ended" satisfies RescheduleResult,
  UNKNOWN: "unknown" satisfies RescheduleResult,
});
const canceling = new Script(cancelLua, "run", {
  CANCELED: "canceled" satisfies CancelResult,
  ASKED: "asked" satisfies CancelResult,
  BEGUN: "begun" satisfies CancelResult,
  ENDED: "ended" satisfies CancelResult,
  UNKNOWN: "unknown" satisfies CancelResult,
  CANCEL_CHANNEL,
});

/** `dueMs` is when the job is to be sent, and `nowMs` the time by the caller's clock. */
export async function reschedule(
  connection: RedisConnection,
  { tenantId, shard }: TenantRef,
  jobId: string,
  { dueMs, nowMs }: { readonly dueMs: number; readonly nowMs: number },
): Promise<RescheduleResult> {
  const args = [tenantId, jobId, Math.round(dueMs), Math.round(nowMs)];
  // The script answers one of these words.
  return (await rescheduling.run(connection, [shardPrefix(shard)], args)) as RescheduleResult;
}

export async function cancel(connection: RedisConnection, { tenantId, shard }: TenantRef, jobId: string) {
  // The script answers one of these words.
  return (await canceling.run(connection, [shardPrefix(shard)], [shard, tenantId, jobId])) as CancelResult;
}
