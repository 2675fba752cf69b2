import { gunzipSync, gzipSync } from "node:zlib";
import type { KnownBatch } from "../../domain/batch.ts";
import type { Idempotency } from "../../domain/queue.ts";
import type { TenantRef } from "../../domain/tenant.ts";
import { engineLimits } from "../limits.ts";
import { answersOf, type RedisConnection, redisFailure } from "./connection.ts";
import { shardPrefix } from "./keys.ts";

/*
 * What the queue keeps of batches under a key, beside their claims: accept.lua notes what it queues, `endBatch` what was
 * refused. Refusals repeat each other and become small under gzip.
 */

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

interface EndedBatch {
  readonly baseId: string;
  readonly refused: string;
  readonly nowMs: number;
}

export async function endBatch(
  connection: RedisConnection,
  { tenantId, shard }: TenantRef,
  { baseId, refused, nowMs }: EndedBatch,
): Promise<void> {
  const prefix = shardPrefix(shard);
  const text = gzipSync(refused);
  // They are kept as long as the key, and count with it (accept.lua).
  const claimsKey = `${prefix}:claims:${tenantId}`;
  await answersOf(
    connection
      .multi()
      .set(refusedKey(prefix, baseId), text, "PX", engineLimits.idempotencyKeptMs)
      .hincrby(claimsKey, String(Math.floor(nowMs / HOUR_MS)), text.length)
      .pexpire(claimsKey, engineLimits.idempotencyKeptMs + 2 * HOUR_MS),
  );
}

const HOUR_MS = 60 * 60 * 1000;

function queuedKey(prefix: string, baseId: string): string {
  return `${prefix}:batch:${baseId}`;
}

function refusedKey(prefix: string, baseId: string): string {
  return `${prefix}:batch:${baseId}:refused`;
}
