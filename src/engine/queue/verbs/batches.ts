import { gunzipSync, gzipSync } from "node:zlib";
import type { KnownBatch } from "../../../domain/jobs/batch.ts";
import type { Idempotency } from "../../../domain/jobs/queue.ts";
import type { TenantRef } from "../../../domain/tenants/tenant.ts";
import { engineLimits } from "../../limits.ts";
import { type RedisConnection, redisFailure } from "../connection.ts";
import { shardPrefix } from "../keys.ts";
import { Script } from "../script.ts";
import endBatchLua from "./end-batch.lua" with { type: "text" };

/*
 * Reads and completes the queue's data about batches under a key, besides their claims: accept.lua records the queued
 * messages, `endBatch` the refusals. Refusals repeat each other and become small under gzip.
 */

const script = new Script(endBatchLua, "refuse");

export async function batchUnder(
  connection: RedisConnection,
  { tenantId, shard }: TenantRef,
  { key, fingerprint }: Idempotency,
): Promise<KnownBatch | null> {
  const prefix = shardPrefix(shard);
  const failed = (error: unknown) => Promise.reject(redisFailure(error));
  // "<base job id> <fingerprint>", as accept.lua writes it.
  const claim = await connection.get(`${prefix}:idem:${tenantId}:${key}`).catch(failed);
  if (claim === null) return null;
  const space = claim.indexOf(" ");
  const baseId = claim.slice(0, space);
  if (claim.slice(space + 1) !== fingerprint) return { isSame: false, baseId, queued: [], refused: null };
  const [ranges, refused] = await Promise.all([
    connection.get(queuedKey(prefix, baseId)),
    connection.getBuffer(refusedKey(prefix, baseId)),
  ]).catch(failed);
  const queued = Array.from(
    (ranges ?? "").matchAll(/(\d+)-(\d+)/g),
    ([, from, to]) => [Number(from), Number(to)] as const,
  );
  return { isSame: true, baseId, queued, refused: refused === null ? null : gunzipSync(refused).toString() };
}

export async function endBatch(
  connection: RedisConnection,
  { tenantId, shard }: TenantRef,
  { baseId, refused }: { readonly baseId: string; readonly refused: string },
): Promise<void> {
  const args = [tenantId, baseId, gzipSync(refused), engineLimits.idempotencyKeptMs];
  await script.run(connection, [shardPrefix(shard)], args);
}

function queuedKey(prefix: string, baseId: string): string {
  return `${prefix}:batch:${baseId}`;
}

function refusedKey(prefix: string, baseId: string): string {
  return `${prefix}:batch:${baseId}:refused`;
}
