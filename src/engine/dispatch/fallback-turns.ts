import { shortened } from "../../domain/back-off.ts";
import { lifeBeganMs } from "../../domain/ids.ts";
import type { EventReader } from "../../domain/jobs/event-store.ts";
import { type Fallback, jobsBefore } from "../../domain/jobs/fallback.ts";
import type { JobRecord, QueuedJob } from "../../domain/jobs/job.ts";
import type { FrontQueue } from "../../domain/jobs/queue.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { logFailure } from "../../domain/telemetry.ts";
import type { TenantRef } from "../../domain/tenants/tenant.ts";
import { decideFallback, type FallbackTurn } from "./fallback-decision.ts";

/**
 * Fallbacks whose messages this process looks up in the event store at one time. Each occupies a slot of its channel.
 */
const LOOKS_MAX = 16;
/** A fallback whose lookup is over this limit, or whose store is away, waits for up to this long. */
const BUSY_MS = 5_000;
const AWAY_MS = 30_000;

export interface FallbackTurnsPorts extends RuntimePorts {
  readonly queue: Pick<FrontQueue, "job">;
  /** Reads jobs that have left the queue. */
  readonly eventStore: Pick<EventReader, "job">;
}

/**
 * Decides for one process whether fallbacks are needed.
 *
 * N1. A decision rests on the history of the message and of the earlier fallbacks in the queue, or else in the event
 *     store. If a store does not answer, there is no decision: the fallback waits.
 * N2. Few lookups in the event store are in flight: if it is slow, fallbacks wait outside their channel's slots.
 */
export class FallbackTurns {
  private looks = 0;

  constructor(private readonly ports: FallbackTurnsPorts) {}

  /** Never rejects. */
  async turn(job: QueuedJob, fallback: Fallback, tenant: TenantRef): Promise<FallbackTurn> {
    const { clock, telemetry } = this.ports;
    try {
      const before = await this.histories(tenant, jobsBefore(fallback));
      if (before === null) return this.wait(BUSY_MS);
      return decideFallback({ fallback, before, dueMs: lifeBeganMs(job), nowMs: clock.nowMs() });
    } catch (error) {
      const fields = { job_id: job.jobId, tenant_id: tenant.tenantId };
      logFailure(telemetry, "a fallback waits until its message can be looked up", error, fields);
      return this.wait(AWAY_MS);
    }
  }

  /** Null: the limit of lookups in the event store is reached. */
  private async histories(tenant: TenantRef, jobIds: readonly string[]): Promise<readonly (JobRecord | null)[] | null> {
    const { queue, eventStore } = this.ports;
    // The queue's data is newer than the event store's.
    const queued = await Promise.all(jobIds.map((jobId) => queue.job(tenant, jobId)));
    if (!queued.includes(null)) return queued;
    if (this.looks >= LOOKS_MAX) return null;
    this.looks += 1;
    try {
      return await Promise.all(jobIds.map(async (jobId, at) => queued[at] ?? eventStore.job(tenant.tenantId, jobId)));
    } finally {
      this.looks -= 1;
    }
  }

  private wait(msMax: number): FallbackTurn {
    return { kind: "wait", ms: Math.ceil(shortened(msMax, 0.5, this.ports.random)) };
  }
}
