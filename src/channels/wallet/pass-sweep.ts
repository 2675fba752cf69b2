import { type Clock, sleep } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import type { EventReader } from "../../domain/event-store.ts";
import { isFinal, type JobRecord } from "../../domain/job.ts";
import { limits } from "../../domain/limits.ts";
import type { PassStore, UnfinishedPass } from "../../domain/passes.ts";
import type { FrontQueue } from "../../domain/queue.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { Tenant, TenantDirectory } from "../../domain/tenant.ts";

export interface PassSweepPorts {
  readonly passes: Pick<PassStore, "unfinished" | "undoCreate" | "finishCreate">;
  readonly directory: TenantDirectory;
  readonly queue: Pick<FrontQueue, "job">;
  /** Of a process that can read the event store: a job that is in neither is taken for one that never was. */
  readonly eventStore: Pick<EventReader, "job">;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/**
 * Ends passes that were stored and paid for a job that never was: a process died between the two, or never learned
 * whether the job was queued. Every process with the event store sweeps; what one of them does, the others find done.
 *
 * S1. A pass is undone only when it is older than any accept can be under way, and neither queue nor event store knows its
 *     job, or they know it as failed. S2. What cannot be asked now is asked again at the next sweep.
 */
export class PassSweep {
  private readonly stopping = new AbortController();
  private sweeping: Promise<void> | null = null;

  constructor(private readonly ports: PassSweepPorts) {}

  /** Begins to sweep. Once only. */
  start(): void {
    this.sweeping ??= this.sweepUntilStopped();
  }

  /** Waits for the running sweep. Safe to call twice. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.sweeping;
  }

  /** One look at passes that are due. Resolves when all that could be asked are dealt with. */
  async sweep(): Promise<void> {
    const { passes, clock, telemetry } = this.ports;
    try {
      const beforeMs = clock.nowMs() - limits.passUnfinishedMs;
      let last: string | null = null;
      do {
        const page: readonly UnfinishedPass[] = await passes.unfinished(beforeMs, last);
        for (const pass of page) {
          if (this.stopping.signal.aborted) return;
          await this.settle(pass);
        }
        last = page.at(-1)?.passId ?? null;
      } while (last !== null);
    } catch (error) {
      const level = isOutage(error) ? "warn" : "error";
      telemetry.log(level, "passes without a job could not be looked for", { error: String(error) });
    }
  }

  private async sweepUntilStopped(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.sweep();
      await sleep(this.ports.clock, limits.passSweepMs, signal);
    }
  }

  private async settle({ tenantId, passId, jobId }: UnfinishedPass): Promise<void> {
    const { directory, passes, telemetry } = this.ports;
    const tenant = await directory.byId(tenantId);
    if (tenant === null) return;
    const job = await this.job(tenant, jobId);
    if (job !== null && !isFinal(job.status)) return;
    if (job?.status === "success") return passes.finishCreate(passId);
    await passes.undoCreate(tenantId, jobId);
    telemetry.count("passes_undone");
    telemetry.log("warn", "undid a pass that has no job", { tenant: tenantId, pass: passId, job: jobId });
  }

  private async job(tenant: Tenant, jobId: string): Promise<JobRecord | null> {
    const { queue, eventStore } = this.ports;
    return (await queue.job(tenant, jobId)) ?? eventStore.job(tenant.tenantId, jobId);
  }
}
