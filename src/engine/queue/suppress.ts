import { FENCED, type Fenced, type Lease } from "../../domain/queue.ts";
import type { IndexedSuppression } from "../../domain/suppressions.ts";
import type { TenantRef } from "../../domain/tenant.ts";
import type { RedisConnection } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import { Script, type ScriptArgument } from "./script.ts";
import suppressLua from "./suppress.lua" with { type: "text" };

/** Runs even when Redis is full: suppressions matter more than the few bytes. */
const script = new Script(suppressLua, "run");

export async function putSuppression(
  connection: RedisConnection,
  { tenantId, shard }: TenantRef,
  address: string,
  reason: string,
): Promise<void> {
  await script.run(connection, [shardPrefix(shard)], ["put", tenantId, address, reason]);
}

export async function removeSuppression(
  connection: RedisConnection,
  { tenantId, shard }: TenantRef,
  address: string,
): Promise<void> {
  await script.run(connection, [shardPrefix(shard)], ["remove", tenantId, address]);
}

export async function loadSuppressions(
  connection: RedisConnection,
  lease: Lease,
  entries: readonly IndexedSuppression[],
  isLast: boolean,
): Promise<"loading" | "loaded" | Fenced> {
  const args: ScriptArgument[] = ["load", lease.token, isLast ? 1 : 0];
  for (const { tenantId, address, reason } of entries) args.push(tenantId, address, reason);
  // The script answers 0, 1, or null when it is fenced.
  const reply = (await script.run(connection, [shardPrefix(lease.shard)], args)) as number | null;
  if (reply === null) return FENCED;
  return reply === 1 ? "loaded" : "loading";
}
