import type { ChannelName } from "../../../domain/jobs/job.ts";
import type { TenantRef } from "../../../domain/tenants/tenant.ts";
import { type ChannelLetters, encodeTenantQueue } from "../codec.ts";
import { type RedisConnection, redisFailure, runPipeline } from "../connection.ts";
import { shardPrefix } from "../keys.ts";
import { Script } from "../script.ts";
import hastenLua from "./hasten.lua" with { type: "text" };

const script = new Script(hastenLua, "run");

/** Parked jobs of a shard that one call checks. */
const PIECE_JOBS = 256;
/** Each process learns of a change within a second. */
const KNOWN_MS = 5_000;
/** If a shard has more parked jobs than these pieces hold, the last ones end when their retries are due. */
const PIECES_MAX = 20_000;

/**
 * Makes the parked jobs of the tenant's channels due, so that a purge ends them now. Returns how many jobs of these
 * channels are unfinished, about: other calls go on meanwhile. Safe to repeat.
 */
export async function hastenParked(
  connection: RedisConnection,
  letters: ChannelLetters,
  { tenantId, shard }: TenantRef,
  channels: readonly ChannelName[],
): Promise<number> {
  const prefix = shardPrefix(shard);
  const names = channels.map((channel) => encodeTenantQueue(letters, { tenantId, channel }));
  let unfinished = 0;
  let cursor = "0";
  for (let pieces = 0; pieces < PIECES_MAX; pieces += 1) {
    // The script answers in this form.
    const [next, seen] = (await script.run(connection, [prefix], [cursor, PIECE_JOBS, KNOWN_MS, ...names])) as [
      string,
      number,
    ];
    unfinished += seen;
    cursor = next;
    if (cursor === "0") break;
  }
  for (const name of names) {
    unfinished += await connection
      .xlen(`${prefix}:box:${name}`)
      .catch((error: unknown) => Promise.reject(redisFailure(error)));
  }
  return unfinished;
}

/** Counts the tenant's jobs that have not ended. */
export async function unfinishedJobs(connection: RedisConnection, { tenantId, shard }: TenantRef): Promise<number> {
  const state = await connection
    .hget(`${shardPrefix(shard)}:tenants`, tenantId)
    .catch((error: unknown) => Promise.reject(redisFailure(error)));
  // The state begins with their number.
  return Number.parseInt(state ?? "0", 10) || 0;
}

/** Removes a tenant that has no unfinished jobs. */
export async function removeTenant(connection: RedisConnection, { tenantId, shard }: TenantRef): Promise<void> {
  const prefix = shardPrefix(shard);
  await runPipeline(
    connection
      .pipeline()
      .del(`${prefix}:suppressed:${tenantId}`, `${prefix}:rate:${tenantId}`)
      .hdel(`${prefix}:tenants`, tenantId),
  );
}
