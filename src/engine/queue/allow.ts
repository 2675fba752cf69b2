import { limits } from "../../domain/limits.ts";
import { type AllowanceCall, FENCED, type Fenced, type Lease } from "../../domain/queue.ts";
import allowLua from "./allow.lua" with { type: "text" };
import { encodeBox } from "./codec.ts";
import type { RedisConnection } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import { Script } from "./script.ts";

/** Also when Redis is full: what is sent leaves it. */
const script = new Script(allowLua, "run");

/** Takes of what a box may send on a day, and answers how many are taken then. */
export async function allow(
  connection: RedisConnection,
  lease: Lease,
  { box, day, allowance, known, wanted }: AllowanceCall,
): Promise<number | Fenced> {
  const args = [lease.token, encodeBox(box), day, allowance, known, wanted, limits.allowanceKeptMs];
  // The script answers a number, or null when it is fenced.
  const reply = (await script.run(connection, [shardPrefix(lease.shard)], args)) as number | null;
  return reply ?? FENCED;
}
