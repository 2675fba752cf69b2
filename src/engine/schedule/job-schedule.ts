import { type Clock, sleep } from "../../domain/clock.ts";
import type { EventReader } from "../../domain/jobs/event-store.ts";
import { fallbackIds } from "../../domain/jobs/fallback.ts";
import type { JobRecord } from "../../domain/jobs/job.ts";
import type { PayloadStore } from "../../domain/jobs/payload-store.ts";
import type { FrontQueue } from "../../domain/jobs/queue.ts";
import type { RetryCharges } from "../../domain/jobs/retry.ts";
import type { CancelOutcome, JobSchedule, RescheduleResult, WaitingJobs } from "../../domain/jobs/schedule.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { logFailure } from "../../domain/telemetry.ts";
import type { TenantRef } from "../../domain/tenants/tenant.ts";

export interface JobSchedulePorts {
  readonly queue: WaitingJobs & Pick<FrontQueue, "job">;
  readonly eventStore: Pick<EventReader, "job">;
  readonly payloads: Pick<PayloadStore, "remove">;
  readonly charges: Pick<RetryCharges, "discard">;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** How long a job's owner has to end it, and how often it is requested to. */
const OWNER_MS = 2_000;
const ASK_AGAIN_MS = 100;

/**
 * Reschedules and cancels jobs that were not handed over, for their tenants.
 *
 * G1. `canceled` is answered only once the job's end is on disk. A repeat of the call gets the same answer.
 * G2. The charge for accepting the job is refunded, and a large payload removed, afterwards, once each. If the process
 *     dies in between, the sweeps do both.
 * G3. A message's fallbacks end with it. A fallback that this misses, or whose time has come, is ended at its turn
 *     because the message was cancelled.
 */
export class JobScheduler implements JobSchedule {
  constructor(private readonly ports: JobSchedulePorts) {}

  async reschedule(tenant: TenantRef, jobId: string, dueMs: number): Promise<RescheduleResult> {
    const { queue } = this.ports;
    const result = await queue.reschedule(tenant, jobId, dueMs);
    return result === "unknown" && (await this.recorded(tenant, jobId)) !== null ? "ended" : result;
  }

  async cancel(tenant: TenantRef, jobId: string): Promise<CancelOutcome> {
    const outcome = await this.cancelOne(tenant, jobId);
    if (outcome === "canceled")
      await Promise.all(fallbackIds(jobId).map((each) => this.cancelFallback(tenant, jobId, each)));
    return outcome;
  }

  private async cancelFallback(tenant: TenantRef, mainJobId: string, jobId: string): Promise<void> {
    const { queue, telemetry } = this.ports;
    try {
      const found = await queue.job(tenant, jobId);
      // The ids of two messages' fallbacks may be the same by chance.
      if (found?.fallbackOf === mainJobId) await this.cancelOne(tenant, jobId);
    } catch (error) {
      const fields = { job_id: jobId, tenant_id: tenant.tenantId };
      logFailure(telemetry, "a fallback of a cancelled message is left to its turn", error, fields);
    }
  }

  private async cancelOne(tenant: TenantRef, jobId: string): Promise<CancelOutcome> {
    const { queue, clock } = this.ports;
    const before = await queue.job(tenant, jobId);
    const giveUpAtMs = clock.monotonicMs() + OWNER_MS;
    for (;;) {
      const result = await queue.cancel(tenant, jobId);
      if (result === "unknown") return this.toCancelOutcome(await this.recorded(tenant, jobId));
      if (result === "canceled") {
        if (before !== null) await this.discard(tenant, before);
        return result;
      }
      if (result !== "asked") return result;
      if (clock.monotonicMs() >= giveUpAtMs) return "begun";
      await sleep(clock, ASK_AGAIN_MS);
    }
  }

  private recorded({ tenantId }: TenantRef, jobId: string): Promise<JobRecord | null> {
    return this.ports.eventStore.job(tenantId, jobId);
  }

  private toCancelOutcome(recorded: JobRecord | null): CancelOutcome {
    if (recorded === null) return "unknown";
    const isCanceled = recorded.status === "suppressed" && recorded.result?.["reason"] === "canceled";
    return isCanceled ? "canceled" : "ended";
  }

  private async discard({ tenantId }: TenantRef, { jobId, channel }: JobRecord): Promise<void> {
    const { payloads, charges, telemetry } = this.ports;
    try {
      await charges.discard(tenantId, { jobId, channel });
      await payloads.remove({ tenantId, jobId });
    } catch (error) {
      const fields = { job_id: jobId, tenant_id: tenantId };
      logFailure(telemetry, "what a cancelled job took is left to the sweeps", error, fields);
    }
  }
}
