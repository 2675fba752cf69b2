import { Cluster, type Redis } from "ioredis";
import { isJobId, lifeBeganMs } from "../../../domain/ids.ts";
import type { RedisMemory, ShardDepth, TenantQueueDepth } from "../../../domain/jobs/queue-depth.ts";
import type { ChannelLetters } from "../codec.ts";
import { type RedisConnection, redisFailure, runPipeline } from "../connection.ts";
import { shardPrefix } from "../keys.ts";
import { Script } from "../script.ts";
import depthLua from "./depth.lua" with { type: "text" };

const script = new Script(depthLua, "run");

/** Tenant queues that are measured per shard; further ones are only counted. */
const TENANT_QUEUES_MAX = 1_000;
/** Tenant queues per script call: about a millisecond of Redis' time. */
const PIECE_MAX = 200;

/** Measures a shard with a bounded number of short calls. Rejects when Redis is away. */
export async function measureDepth(
  connection: RedisConnection,
  letters: ChannelLetters,
  shard: number,
): Promise<ShardDepth> {
  const prefix = shardPrefix(shard);
  const [ready, held, someReady, someHeld, parked, outbox] = await runPipeline(
    connection
      .pipeline()
      .scard(`${prefix}:ready`)
      .scard(`${prefix}:held`)
      // Not SMEMBERS: a set may name a hundred thousand tenants.
      .srandmember(`${prefix}:ready`, TENANT_QUEUES_MAX)
      .srandmember(`${prefix}:held`, TENANT_QUEUES_MAX)
      .zcard(`${prefix}:later`)
      .xrange(`${prefix}:outbox`, "-", "+", "COUNT", 1),
  );
  const names = [...new Set([...namesIn(someReady), ...namesIn(someHeld)])].slice(0, TENANT_QUEUES_MAX);
  return {
    shard,
    tenantQueues: Number(ready) + Number(held),
    measured: await measure(connection, letters, { prefix, names }),
    parked: Number(parked),
    oldestEventMs: firstEntryMs(outbox),
  };
}

async function measure(
  connection: RedisConnection,
  letters: ChannelLetters,
  { prefix, names }: { readonly prefix: string; readonly names: readonly string[] },
): Promise<readonly TenantQueueDepth[]> {
  const measured: TenantQueueDepth[] = [];
  for (let at = 0; at < names.length; at += PIECE_MAX) {
    const piece = names.slice(at, at + PIECE_MAX);
    // The script answers three values for each tenant queue.
    const reply = (await script.run(connection, [prefix], piece)) as readonly (number | string)[];
    for (const [i, name] of piece.entries()) {
      const [jobs, first, due] = [Number(reply[3 * i]), String(reply[3 * i + 1]), Number(reply[3 * i + 2])];
      const slash = name.lastIndexOf("/");
      const letter = name.slice(slash + 1);
      if (jobs === 0 || slash < 1 || !letters.knows(letter)) continue;
      const oldestMs = isJobId(first) ? lifeBeganMs({ jobId: first, dueMs: due }) : null;
      measured.push({ tenantId: name.slice(0, slash), channel: letters.toChannel(letter), jobs, oldestMs });
    }
  }
  return measured;
}

/** Returns the memory of the fullest server. */
export async function measureMemory(connection: RedisConnection): Promise<RedisMemory> {
  const nodes = connection instanceof Cluster ? connection.nodes("master") : [connection];
  const all = await Promise.all(nodes.map(memoryOfNode));
  const part = ({ usedBytes, maxBytes }: RedisMemory) => usedBytes / (maxBytes ?? Number.POSITIVE_INFINITY);
  return all.reduce((fullest, each) => (part(each) > part(fullest) ? each : fullest), all[0] ?? NO_MEMORY);
}

/** Returns one server's memory. */
export async function memoryOfNode(node: Redis): Promise<RedisMemory> {
  const text = await node.info("memory").catch((error: unknown) => Promise.reject(redisFailure(error)));
  const [used, max, system] = ["used_memory", "maxmemory", "total_system_memory"].map((name) =>
    Number(new RegExp(`^${name}:(\\d+)`, "m").exec(text)?.[1] ?? 0),
  );
  return { usedBytes: used ?? 0, maxBytes: max || system || null };
}

const NO_MEMORY: RedisMemory = { usedBytes: 0, maxBytes: null };

function namesIn(reply: unknown): readonly string[] {
  return Array.isArray(reply) ? reply.map(String) : [];
}

/** An entry of the outbox is named by the time at which it was written. */
function firstEntryMs(reply: unknown): number | null {
  const id: unknown = Array.isArray(reply) && Array.isArray(reply[0]) ? reply[0][0] : null;
  return typeof id === "string" ? Number.parseInt(id, 10) : null;
}
