import { ownerlessShards, type ProcessStatuses, type QueueWait } from "../process-status.ts";
import type { ChannelName } from "./job.ts";
import type { LeaseRole } from "./queue.ts";

/** A tenant queue with jobs, those in flight included. */
export interface TenantQueueDepth {
  readonly tenantId: string;
  readonly channel: ChannelName;
  readonly jobs: number;
  /** When its first job was accepted, or was to be sent if it was scheduled (unix ms). */
  readonly oldestMs: number | null;
}

export interface ShardDepth {
  readonly shard: number;
  /** Tenant queues with jobs. */
  readonly tenantQueues: number;
  /** A bounded number of them. */
  readonly measured: readonly TenantQueueDepth[];
  /**
   * Jobs that wait outside their tenant queue for their time, for another try, or for the outcome of a delivery that
   * was lent.
   */
  readonly parked: number;
  /** When the oldest event was written that the event store does not have yet (unix ms); null: it has all. */
  readonly oldestEventMs: number | null;
}

export interface RedisMemory {
  readonly usedBytes: number;
  /** The server's memory limit, or the machine's memory; null: unknown. */
  readonly maxBytes: number | null;
}

/** The queue's measurements of its size and its owners. */
export interface MeasuredQueue {
  readonly statuses: Pick<ProcessStatuses, "statuses">;
  depth(shard: number): Promise<ShardDepth>;
  memory(): Promise<RedisMemory>;
}

/** A tenant queue, and the reason why its first job waits, as far as processes report it. */
export interface WaitingQueue extends TenantQueueDepth {
  readonly waits: QueueWait;
}

export interface MeasuredShard extends ShardDepth {
  readonly measured: readonly WaitingQueue[];
}

/** The state of the queue as a whole. */
export interface QueueFacts {
  readonly depths: readonly MeasuredShard[];
  readonly memory: RedisMemory;
  /** Shards whose work is not done by any living process. */
  readonly unowned: Readonly<Record<LeaseRole, number>>;
}

/** Reads all shards, one after the other, so that it does not fill the connection that requests use. */
export async function queueFacts(queue: MeasuredQueue, shards: number): Promise<QueueFacts> {
  const depths: ShardDepth[] = [];
  for (let shard = 0; shard < shards; shard += 1) depths.push(await queue.depth(shard));
  const { statuses } = await queue.statuses.statuses();
  const unowned = (role: LeaseRole) => ownerlessShards(statuses, role, shards).length;
  const waits = new Map(
    statuses.flatMap(({ held }) => (held ?? []).map((one) => [queueName(one), one.waits] as const)),
  );
  const waiting = (one: TenantQueueDepth): WaitingQueue => ({ ...one, waits: waits.get(queueName(one)) ?? "turn" });
  return {
    depths: depths.map((depth) => ({ ...depth, measured: depth.measured.map(waiting) })),
    unowned: { dispatcher: unowned("dispatcher"), recorder: unowned("recorder") },
    memory: await queue.memory(),
  };
}

function queueName({ tenantId, channel }: Pick<TenantQueueDepth, "tenantId" | "channel">): string {
  return `${tenantId} ${channel}`;
}
