import { type Clock, sleep } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import type { EventReader } from "../../domain/event-store.ts";
import { isJobId, jobTimeMs } from "../../domain/ids.ts";
import { isFinal } from "../../domain/job.ts";
import type { PayloadRef, PayloadStore } from "../../domain/payload-store.ts";
import type { FrontQueue } from "../../domain/queue.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { TenantDirectory } from "../../domain/tenant.ts";

export interface PayloadSweepPorts {
  readonly payloads: Pick<PayloadStore, "all" | "remove">;
  readonly directory: TenantDirectory;
  readonly queue: Pick<FrontQueue, "job">;
  /** Of a process that can read the event store: a job that is in neither is taken for one that never was. */
  readonly eventStore: Pick<EventReader, "job">;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

const SWEEP_MS = 60_000;
/** Longer than an accept can be under way, and the clocks of processes differ: by then the job is queued or never will be. */
const UNQUEUED_MS = 15 * 60_000;

/**
 * Removes large payloads whose job has ended, or never was: its accept was refused, or its process died in between.
 *
 * S1. The payload of a job that is not final is never removed, nor one whose job may still be queued. S2. What cannot be
 *     asked now is asked again at the next sweep.
 */
export class PayloadSweep {
  private readonly stopping = new AbortController();
  private sweeping: Promise<void> | null = null;

  constructor(private readonly ports: PayloadSweepPorts) {}

  /** Begins to sweep. Once only. */
  start(): void {
    this.sweeping ??= this.sweepUntilStopped();
  }

  /** Waits for the sweep under way. Safe to repeat. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.sweeping;
  }

  /** One look at all payloads. */
  async sweep(): Promise<void> {
    const { payloads, telemetry } = this.ports;
    let kept = 0;
    try {
      for await (const piece of payloads.all()) {
        for (const ref of piece) {
          if (this.stopping.signal.aborted) return;
          if (await this.isNeeded(ref)) kept += 1;
          else await payloads.remove(ref);
        }
      }
      telemetry.gauge("stored_payloads", kept);
    } catch (error) {
      const level = isOutage(error) ? "warn" : "error";
      telemetry.log(level, "large payloads could not be swept", { error: String(error) });
    }
  }

  private async sweepUntilStopped(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.sweep();
      await sleep(this.ports.clock, SWEEP_MS, signal);
    }
  }

  private async isNeeded({ tenantId, jobId }: PayloadRef): Promise<boolean> {
    const { clock, directory, queue, eventStore } = this.ports;
    const tenant = await directory.byId(tenantId);
    if (tenant === null) return false;
    const queued = await queue.job(tenant, jobId);
    if (queued !== null) return !isFinal(queued.status);
    if (isJobId(jobId) && clock.nowMs() - jobTimeMs(jobId) < UNQUEUED_MS) return true;
    const recorded = await eventStore.job(tenantId, jobId);
    return recorded !== null && !isFinal(recorded.status);
  }
}
