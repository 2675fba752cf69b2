import { hash } from "node:crypto";
import type { EndReason } from "../../domain/job.ts";
import { FENCED, type Fenced, type Lease } from "../../domain/queue.ts";
import { ERASED_NAME, type IndexedSuppression } from "../../domain/suppressions.ts";
import type { TenantRef } from "../../domain/tenant.ts";
import { suppressionReason } from "./codec.ts";
import { type RedisConnection, redisFailure } from "./connection.ts";
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

/** As `pull.lua` looks a job's recipient up: by its address, then by its erased name. */
export async function suppressedAmong(
  connection: RedisConnection,
  { tenantId, shard }: TenantRef,
  addresses: readonly string[],
): Promise<ReadonlyMap<string, EndReason>> {
  const key = `${shardPrefix(shard)}:suppressed:${tenantId}`;
  const read = (fields: readonly string[]) =>
    connection.hmget(key, ...fields).catch((error: unknown) => Promise.reject(redisFailure(error)));
  const [erasedKey, ...reasons] = await read([ERASED_NAME, ...addresses]);
  const found = new Map<string, EndReason>();
  const note = (address: string, reason: string | null | undefined) => {
    if (reason) found.set(address, suppressionReason(reason));
  };
  for (const [at, address] of addresses.entries()) note(address, reasons[at]);
  // A removed suppression has an empty reason, which no erased name overrides.
  const unknown = addresses.filter((_, at) => typeof reasons[at] !== "string");
  if (!erasedKey || unknown.length === 0) return found;
  const erased = await read(unknown.map((address) => ERASED_NAME + hash("sha1", erasedKey + address, "hex")));
  for (const [at, address] of unknown.entries()) note(address, erased[at]);
  return found;
}
