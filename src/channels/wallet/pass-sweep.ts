import type { EventReader } from "../../domain/jobs/event-store.ts";
import { isFinal, type JobRecord } from "../../domain/jobs/job.ts";
import { KnownWaits } from "../../domain/jobs/known-waits.ts";
import type { FrontQueue } from "../../domain/jobs/queue.ts";
import { Unjudged } from "../../domain/jobs/unjudged.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { Sweep } from "../../domain/sweep.ts";
import type { Tenant, TenantDirectory } from "../../domain/tenants/tenant.ts";
import { walletLimits } from "./limits.ts";
import type { PassStore, UnfinishedPass } from "./passes.ts";

export interface PassSweepPorts extends RuntimePorts {
  readonly passes: Pick<PassStore, "unfinished" | "undoCreate" | "discard" | "finishCreate" | "removeFailed">;
  readonly directory: TenantDirectory;
  readonly queue: Pick<FrontQueue, "job">;
  /** Must be able to read the event store: a job found in neither queue nor event store counts as never queued. */
  readonly eventStore: Pick<EventReader, "job">;
}

/** Interval of checks of a scheduled job, in case its cancellation failed to refund its token. */
const WAITING_LOOK_MS = 10 * 60_000;

/**
 * Undoes passes that were stored and charged for a job that never existed: a process died between the two steps, or
 * could not find out whether the job was queued. Every process with the event store sweeps, and skips what another has
 * already done. Failed passes are removed when their jobs can no longer be retried.
 *
 * S1. A pass is undone only when it is older than any accept in flight can be, and neither queue nor event store has
 *     its job, or they report it as failed.
 * S2. A pass whose job cannot be checked now is checked at the next sweep. A problem with one pass does not delay
 *     others.
 */
export class PassSweep extends Sweep {
  /** Passes of scheduled jobs. */
  private waiting: KnownWaits;

  constructor(private readonly ports: PassSweepPorts) {
    const failure = "passes without a job, or with a failed one, could not be looked for";
    super(ports, { everyMs: walletLimits.passSweepMs, failure });
    this.waiting = new KnownWaits(ports.clock);
  }

  /** Ends when every pass that can be checked now is done. */
  protected override async work(): Promise<void> {
    const { passes, clock, telemetry } = this.ports;
    const waiting = new KnownWaits(clock);
    const unjudged = new Unjudged(telemetry, "a pass could not be judged, and stays as it is");
    const beforeMs = clock.nowMs() - walletLimits.passUnfinishedMs;
    let last: UnfinishedPass | null = null;
    do {
      const page: readonly UnfinishedPass[] = await passes.unfinished(beforeMs, last);
      for (const pass of page) {
        if (this.isStopping) return;
        const { tenantId: tenant, passId, jobId } = pass;
        const untilMs = await this.settle(pass).catch((error: unknown) => {
          unjudged.note(error, { tenant, pass: passId, job: jobId });
          return null;
        });
        if (untilMs !== null) waiting.note(passId, untilMs);
      }
      last = page.at(-1) ?? null;
    } while (last !== null);
    this.waiting = waiting;
    const failedBeforeMs = clock.nowMs() - walletLimits.failedPassKeptMs;
    while (!this.isStopping && !(await passes.removeFailed(failedBeforeMs)));
  }

  /** Finishes or undoes the pass if its job has ended. Returns when (unix ms) the next check is due, or null if unknown. */
  private async settle(pass: UnfinishedPass): Promise<number | null> {
    const { clock, directory, passes } = this.ports;
    const { tenantId, passId, jobId } = pass;
    const waitsUntilMs = this.waiting.untilMs(passId);
    if (waitsUntilMs !== null) return waitsUntilMs;
    const tenant = await directory.byId(tenantId);
    if (tenant === null) return null;
    const job = await this.job(tenant, jobId);
    if (job !== null && !isFinal(job.status)) {
      return job.dueMs === undefined ? null : Math.min(job.dueMs, clock.nowMs() + WAITING_LOOK_MS);
    }
    if (job?.status === "success") await passes.finishCreate(passId);
    else await this.undo(pass, job);
    return null;
  }

  private async undo({ tenantId, passId, jobId }: UnfinishedPass, job: JobRecord | null): Promise<void> {
    const { passes, telemetry } = this.ports;
    // Only a failed job can be retried.
    await (job?.status === "failed" ? passes.undoCreate(tenantId, jobId) : passes.discard(tenantId, jobId));
    telemetry.count("passes_undone");
    telemetry.log("warn", "undid a pass that has no job", { tenant: tenantId, pass: passId, job: jobId });
  }

  private async job(tenant: Tenant, jobId: string): Promise<JobRecord | null> {
    const { queue, eventStore } = this.ports;
    return (await queue.job(tenant, jobId)) ?? eventStore.job(tenant.tenantId, jobId);
  }
}
