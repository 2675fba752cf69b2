import type { AllowanceCall } from "../../src/domain/jobs/queue.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import { alive, type ShardState, tenantQueueName } from "./memory-queue-shard.ts";

/** What allow.lua does. */
export function allow(shard: ShardState, call: AllowanceCall, nowMs: number): number {
  const { tenantQueue, day, allowance, known, wanted } = call;
  const key = `${tenantQueueName(tenantQueue)}:${day}`;
  const stored = alive(shard.allowances.get(key), nowMs)?.value ?? 0;
  if (stored > known) return stored;
  const taken = Math.max(known, Math.min(known + wanted, allowance));
  if (taken > stored) shard.allowances.set(key, { value: taken, expiresMs: nowMs + engineLimits.allowanceKeptMs });
  return taken;
}
