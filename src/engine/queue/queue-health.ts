import { Cluster, type Redis } from "ioredis";
import type { Clock } from "../../domain/clock.ts";
import type { TenantQueue } from "../../domain/jobs/queue.ts";
import type { RedisMemory } from "../../domain/jobs/queue-depth.ts";
import { ChannelLetters, type QueuedChannel } from "./codec.ts";
import { type RedisConnection, redisFailure } from "./connection.ts";
import { shardPrefix } from "./keys.ts";
import { formatAddress, type RedisInspection } from "./redis-inspection.ts";
import { measureDepth, memoryOfNode } from "./verbs/depth.ts";

/** The state of one Redis server. */
export interface NodeHealth {
  readonly place: string;
  /** The difference of its clock from this machine's; positive: it is ahead. */
  readonly skewMs: number;
  readonly memory: RedisMemory;
  /** Whether its last write to the append-only file, and the last rewrite of that, succeeded. */
  readonly canAppend: boolean;
  readonly canRewrite: boolean;
}

/** The state of one shard. */
export interface ShardHealth {
  readonly shard: number;
  /** The oldest first job among the measured tenant queues; null: none. */
  readonly oldest: (TenantQueue & { readonly ageMs: number }) | null;
  /** How long the oldest event has waited for the event store; null: none is waiting. */
  readonly outboxAgeMs: number | null;
  readonly quarantined: number;
}

export interface QueueHealth {
  readonly nodes: readonly NodeHealth[];
  readonly shards: readonly ShardHealth[];
}

/** Reads the queue's state in bounded pieces, without writing. */
export async function queueHealth(
  { connection }: Pick<RedisInspection, "connection">,
  { shards, channels }: { readonly shards: number; readonly channels: readonly QueuedChannel[] },
  clock: Clock,
): Promise<QueueHealth> {
  try {
    const nodes = connection instanceof Cluster ? connection.nodes("master") : [connection];
    const letters = new ChannelLetters(channels);
    const all = Array.from({ length: shards }, (_, shard) => shard);
    return {
      nodes: await Promise.all(nodes.map((node) => nodeHealth(node, clock))),
      shards: await Promise.all(all.map((shard) => shardHealth(connection, letters, shard, clock))),
    };
  } catch (error) {
    throw redisFailure(error);
  }
}

async function nodeHealth(node: Redis, clock: Clock): Promise<NodeHealth> {
  const [seconds, micros] = await node.time();
  const skewMs = Number(seconds) * 1000 + Number(micros) / 1000 - clock.nowMs();
  const info = new Map(
    (await node.info("persistence")).split(/\r?\n/).map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, Math.max(0, colon)), line.slice(colon + 1)];
    }),
  );
  return {
    place: formatAddress(node),
    skewMs,
    memory: await memoryOfNode(node),
    canAppend: (info.get("aof_last_write_status") ?? "ok") === "ok",
    canRewrite: (info.get("aof_last_bgrewrite_status") ?? "ok") === "ok",
  };
}

async function shardHealth(
  redis: RedisConnection,
  letters: ChannelLetters,
  shard: number,
  clock: Clock,
): Promise<ShardHealth> {
  const prefix = shardPrefix(shard);
  const { measured, oldestEventMs } = await measureDepth(redis, letters, shard);
  const getAgeMs = (sinceMs: number) => Math.max(0, clock.nowMs() - sinceMs);
  const [oldest] = measured
    .flatMap(({ tenantId, channel, oldestMs }) => (oldestMs === null ? [] : [{ tenantId, channel, oldestMs }]))
    .sort((a, b) => a.oldestMs - b.oldestMs);
  return {
    shard,
    oldest:
      oldest === undefined
        ? null
        : { ageMs: getAgeMs(oldest.oldestMs), tenantId: oldest.tenantId, channel: oldest.channel },
    outboxAgeMs: oldestEventMs === null ? null : getAgeMs(oldestEventMs),
    quarantined: await redis.llen(`${prefix}:quarantine`),
  };
}
