import { type AllowanceCall, FENCED, type Fenced, type Lease } from "../../../domain/jobs/queue.ts";
import { engineLimits } from "../../limits.ts";
import { type ChannelLetters, encodeTenantQueue } from "../codec.ts";
import type { RedisConnection } from "../connection.ts";
import { shardPrefix } from "../keys.ts";
import { Script } from "../script.ts";
import allowLua from "./allow.lua" with { type: "text" };

/** Runs even when Redis is full: sending empties the queue. */
const script = new Script(allowLua, "run");

/** Reserves part of a tenant queue's daily allowance, and returns how many units are taken afterwards. */
export async function allow(
  connection: RedisConnection,
  letters: ChannelLetters,
  lease: Lease,
  { tenantQueue, day, allowance, known, wanted }: AllowanceCall,
): Promise<number | Fenced> {
  const args = [
    lease.token,
    encodeTenantQueue(letters, tenantQueue),
    day,
    allowance,
    known,
    wanted,
    engineLimits.allowanceKeptMs,
  ];
  // The script answers a number, or null when it is fenced.
  const reply = (await script.run(connection, [shardPrefix(lease.shard)], args)) as number | null;
  return reply ?? FENCED;
}
