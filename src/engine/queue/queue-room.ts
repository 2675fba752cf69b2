import type { Clock } from "../../domain/clock.ts";
import type { QueueQuota } from "../../domain/jobs/queue.ts";
import type { RedisMemory } from "../../domain/jobs/queue-depth.ts";
import type { Telemetry } from "../../domain/telemetry.ts";

/**
 * From this share of its memory in use, Redis grants no more large shares. Operators are also alarmed from here on.
 */
const CROWDED_PART = 0.8;
/** One tenant's limit then, as a share of the memory. */
const TENANT_PART = 1 / 8;
/** Bytes that a queued job takes besides its payload. */
const JOB_BYTES = 1_024;
/** A share that any Redis grants, however little memory it has. */
const LEAST_BYTES = 16 * 1024 * 1024;
const LOOK_MS = 1_000;

export interface QueueRoomPorts {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly memory: () => Promise<RedisMemory>;
}

/**
 * Keeps memory in Redis for all tenants. Plans may grant one tenant as much as Redis has, and more: its share holds as
 * long as memory is plentiful, and from `CROWDED_PART` on a tenant queues no more than `TENANT_PART` of the memory. So
 * one tenant whose relay hangs does not cause refusals for others. Jobs that are already queued stay. The tenant's
 * idempotency keys may take as much again: in a day they can outnumber the jobs in the queue.
 */
export class QueueRoom {
  /** Null: memory is plentiful. */
  private most: QueueQuota | null = null;
  private lookedMs = Number.NEGATIVE_INFINITY;
  private looks = false;

  constructor(private readonly ports: QueueRoomPorts) {}

  /** Returns the remaining part of a share for now. Reads the memory at most once a second, and only on demand. */
  within(quota: QueueQuota | undefined): QueueQuota | undefined {
    const nowMs = this.ports.clock.monotonicMs();
    if (!this.looks && nowMs - this.lookedMs >= LOOK_MS) {
      this.lookedMs = nowMs;
      void this.look();
    }
    const { most } = this;
    if (most === null || quota === undefined) return quota;
    return { jobs: Math.min(quota.jobs, most.jobs), bytes: Math.min(quota.bytes, most.bytes) };
  }

  /** The limit of a tenant's idempotency keys for now; null: memory is plentiful. As of the last reading. */
  get claimedBytesMax(): number | null {
    return this.most?.bytes ?? null;
  }

  private async look(): Promise<void> {
    this.looks = true;
    // A Redis that does not answer does not accept jobs either.
    const memory = await this.ports.memory().catch(() => null);
    this.looks = false;
    if (memory === null) return;
    const { telemetry } = this.ports;
    const before = this.most;
    this.most = mostIn(memory);
    if (before === null && this.most !== null) {
      const fields = { used_bytes: memory.usedBytes, max_bytes: memory.maxBytes, tenant_bytes: this.most.bytes };
      telemetry.log("warn", "redis is filling up: no tenant queues more than its part", fields);
    } else if (before !== null && this.most === null) telemetry.log("info", "redis has room again");
  }
}

function mostIn({ usedBytes, maxBytes }: RedisMemory): QueueQuota | null {
  if (maxBytes === null || usedBytes < CROWDED_PART * maxBytes) return null;
  const bytes = Math.max(LEAST_BYTES, Math.floor(TENANT_PART * maxBytes));
  return { bytes, jobs: Math.floor(bytes / JOB_BYTES) };
}
