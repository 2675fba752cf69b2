import type { ChannelName } from "./job.ts";

/** A tenant queue with jobs, those in flight included. */
export interface TenantQueueDepth {
  readonly tenantId: string;
  readonly channel: ChannelName;
  readonly jobs: number;
  /** When its first job was accepted (unix ms). */
  readonly oldestMs: number | null;
}

export interface ShardDepth {
  readonly shard: number;
  /** Tenant queues with jobs. */
  readonly tenantQueues: number;
  /** A bounded number of them. */
  readonly measured: readonly TenantQueueDepth[];
  /** Jobs that wait elsewhere for another try, or for the outcome of a delivery that was lent. */
  readonly parked: number;
  /** When the first event was written that the event store does not have yet (unix ms); null: it has all. */
  readonly oldestEventMs: number | null;
}

export interface RedisMemory {
  readonly usedBytes: number;
  /** What it may use, or what the machine has; null: unknown. */
  readonly maxBytes: number | null;
}
