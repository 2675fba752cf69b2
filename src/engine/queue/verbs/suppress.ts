import { hash } from "node:crypto";
import { FENCED, type Fenced, type Lease } from "../../../domain/jobs/queue.ts";
import {
  ERASED_NAME,
  type IndexedSuppression,
  type Stop,
  type SuppressibleMessage,
  suppressionName,
} from "../../../domain/tenants/suppressions.ts";
import type { TenantRef } from "../../../domain/tenants/tenant.ts";
import { suppressionReason } from "../codec.ts";
import { type RedisConnection, redisFailure } from "../connection.ts";
import { shardPrefix } from "../keys.ts";
import { Script, type ScriptArgument } from "../script.ts";
import suppressLua from "./suppress.lua" with { type: "text" };

/** Runs even when Redis is full: suppressions matter more than the few bytes. */
const script = new Script(suppressLua, "run");

export async function putSuppression(
  connection: RedisConnection,
  { tenantId, shard }: TenantRef,
  name: string,
  reason: string,
): Promise<void> {
  await script.run(connection, [shardPrefix(shard)], ["put", tenantId, name, reason]);
}

export async function removeSuppression(
  connection: RedisConnection,
  { tenantId, shard }: TenantRef,
  name: string,
): Promise<void> {
  await script.run(connection, [shardPrefix(shard)], ["remove", tenantId, name]);
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

/**
 * Looks recipients up as `pull.lua` looks up a job's: by address, then by erased name, for all messages and then for
 * the topic. Also returns recipients that were erased after the job was accepted.
 */
export async function suppressedAmong(
  connection: RedisConnection,
  tenant: TenantRef,
  addresses: readonly string[],
  { acceptedMs, topic }: SuppressibleMessage,
): Promise<ReadonlyMap<string, Stop>> {
  const key = `${shardPrefix(tenant.shard)}:suppressed:${tenant.tenantId}`;
  const failed = (error: unknown) => Promise.reject(redisFailure(error));
  const abouts = topic === undefined ? [undefined] : [undefined, topic];
  const toNames = (people: readonly string[]) =>
    abouts.flatMap((about) => people.map((one) => suppressionName(one, about)));
  const [[erasedKey, ...reasons], erasedMs] = await Promise.all([
    connection.hmget(key, ERASED_NAME, ...toNames(addresses)).catch(failed),
    connection.mget(addresses.map((address) => erasedCopyKey(tenant, address))).catch(failed),
  ]);
  const erasedNames = erasedKey
    ? addresses.map((address) => ERASED_NAME + hash("sha1", erasedKey + address, "hex"))
    : [];
  const erasedReasons =
    erasedNames.length === 0 ? [] : await connection.hmget(key, ...toNames(erasedNames)).catch(failed);
  const found = new Map<string, Stop>();
  for (const [nth, about] of abouts.entries()) {
    for (const [i, address] of addresses.entries()) {
      const at = nth * addresses.length + i;
      // A removed suppression has an empty reason, which no erased name overrides.
      const reason = reasons[at] ?? erasedReasons[at];
      if (!reason || found.has(address)) continue;
      found.set(address, { reason: suppressionReason(reason), ...(about !== undefined && { topic: about }) });
    }
  }
  for (const [at, address] of addresses.entries()) {
    if (!found.has(address) && Number(erasedMs[at] ?? 0) >= acceptedMs) found.set(address, { reason: "erased" });
  }
  return found;
}

export async function wasErasedSince(
  connection: RedisConnection,
  tenant: TenantRef,
  address: string,
  sinceMs: number,
): Promise<boolean> {
  const failed = (error: unknown) => Promise.reject(redisFailure(error));
  return Number((await connection.get(erasedCopyKey(tenant, address)).catch(failed)) ?? 0) >= sinceMs;
}

/**
 * Returns the key with the time when a recipient was erased, for messages that name them among others. `erase.lua`
 * writes it.
 */
function erasedCopyKey({ tenantId, shard }: TenantRef, address: string): string {
  return `${shardPrefix(shard)}:erased-copy:${tenantId}:${erasedCopyName(address)}`;
}

export function erasedCopyName(address: string): string {
  return hash("sha256", address, "hex");
}
