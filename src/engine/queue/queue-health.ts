import { Cluster, type Redis } from "ioredis";
import type { Clock } from "../../domain/clock.ts";
import { isJobId, jobTimeMs } from "../../domain/ids.ts";
import type { LeaseRole } from "../../domain/queue.ts";
import { redisFailure } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import { placeOf, type RedisInspection } from "./redis-inspection.ts";

/** Tenant queues of a shard that are looked at for the oldest job. */
const BOXES_MAX = 500;

/** How one Redis server is. */
export interface NodeHealth {
  readonly place: string;
  /** Of its clock against this machine's; positive: it is ahead. */
  readonly skewMs: number;
  readonly usedBytes: number;
  /** 0: no bound. */
  readonly maxBytes: number;
  /** Whether its last write to the append-only file, and the last rewrite of that, succeeded. */
  readonly canAppend: boolean;
  readonly canRewrite: boolean;
}

/** How one shard is. */
export interface ShardHealth {
  readonly shard: number;
  /** Roles that no process plays for it. */
  readonly ownerless: readonly LeaseRole[];
  /** The first job in any of its tenant queues; null: none. */
  readonly oldest: { readonly ageMs: number; readonly box: string } | null;
  /** How long the oldest event waits for the event store; null: none does. */
  readonly outboxAgeMs: number | null;
  readonly quarantined: number;
}

export interface QueueHealth {
  readonly nodes: readonly NodeHealth[];
  readonly shards: readonly ShardHealth[];
}

const ROLES: readonly LeaseRole[] = ["dispatcher", "recorder"];

/** Reads how the queue is, in bounded pieces. Changes nothing. */
export async function queueHealth(
  { connection }: Pick<RedisInspection, "connection">,
  shards: number,
  clock: Clock,
): Promise<QueueHealth> {
  try {
    const nodes = connection instanceof Cluster ? connection.nodes("master") : [connection];
    const all = Array.from({ length: shards }, (_, shard) => shard);
    return {
      nodes: await Promise.all(nodes.map((node) => nodeHealth(node, clock))),
      shards: await Promise.all(all.map((shard) => shardHealth(connection, shard, clock))),
    };
  } catch (error) {
    throw redisFailure(error);
  }
}

async function nodeHealth(node: Redis, clock: Clock): Promise<NodeHealth> {
  const [seconds, micros] = await node.time();
  const skewMs = Number(seconds) * 1000 + Number(micros) / 1000 - clock.nowMs();
  const info = new Map(
    `${await node.info("memory")}\n${await node.info("persistence")}`.split(/\r?\n/).map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, Math.max(0, colon)), line.slice(colon + 1)];
    }),
  );
  return {
    place: placeOf(node),
    skewMs,
    usedBytes: Number(info.get("used_memory") ?? 0),
    maxBytes: Number(info.get("maxmemory") ?? 0),
    canAppend: (info.get("aof_last_write_status") ?? "ok") === "ok",
    canRewrite: (info.get("aof_last_bgrewrite_status") ?? "ok") === "ok",
  };
}

async function shardHealth(redis: Redis | Cluster, shard: number, clock: Clock): Promise<ShardHealth> {
  const prefix = shardPrefix(shard);
  const held = await Promise.all(ROLES.map((role) => redis.exists(`${prefix}:lease:${role}`)));
  const [first] = await redis.xrange(`${prefix}:outbox`, "-", "+", "COUNT", 1);
  return {
    shard,
    ownerless: ROLES.filter((_, at) => held[at] === 0),
    oldest: await oldestJob(redis, prefix, clock),
    // Redis names its entries by its clock.
    outboxAgeMs: first === undefined ? null : Math.max(0, clock.nowMs() - Number.parseInt(first[0], 10)),
    quarantined: await redis.llen(`${prefix}:quarantine`),
  };
}

async function oldestJob(redis: Redis | Cluster, prefix: string, clock: Clock): Promise<ShardHealth["oldest"]> {
  const boxes = new Set<string>();
  for (const key of [`${prefix}:ready`, `${prefix}:held`]) {
    for (let cursor = "0", begun = false; (cursor !== "0" || !begun) && boxes.size < BOXES_MAX; begun = true) {
      const [next, found] = await redis.sscan(key, cursor, "COUNT", 200);
      for (const box of found) boxes.add(box);
      cursor = next;
    }
  }
  let oldest: ShardHealth["oldest"] = null;
  for (const box of boxes) {
    const [entry] = await redis.xrange(`${prefix}:box:${box}`, "-", "+", "COUNT", 1);
    const jobId = entry?.[1][1]?.slice(0, 36) ?? "";
    const ageMs = isJobId(jobId) ? clock.nowMs() - jobTimeMs(jobId) : 0;
    if (ageMs > (oldest?.ageMs ?? 0)) oldest = { ageMs, box };
  }
  return oldest;
}
