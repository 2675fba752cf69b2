import type { Clock } from "../../domain/clock.ts";
import { isOutage } from "../../domain/errors.ts";
import type { EventReader } from "../../domain/event-store.ts";
import { isJobId, jobTimeMs } from "../../domain/ids.ts";
import { isFinal } from "../../domain/job.ts";
import type { PayloadRef, PayloadStore } from "../../domain/payload-store.ts";
import type { FrontQueue } from "../../domain/queue.ts";
import { Repeated } from "../../domain/repeated.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import type { TenantDirectory } from "../../domain/tenant.ts";

export interface PayloadSweepPorts {
  readonly payloads: Pick<PayloadStore, "all" | "remove">;
  readonly directory: TenantDirectory;
  readonly queue: Pick<FrontQueue, "job">;
  /**
   * The event store, which this process must be able to read: a job in neither it nor the queue is taken as never
   * accepted.
   */
  readonly eventStore: Pick<EventReader, "job">;
  /** Of jobs that failed and have left the queue: whether what they were to send is kept; absent: of none. */
  keepsFailed?(ref: PayloadRef): Promise<boolean>;
  /** The metric of what is needed, default `stored_payloads`. */
  readonly gauge?: string;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

const SWEEP_MS = 60_000;
/**
 * Longer than an accept can be in flight plus the difference of the processes' clocks: by then the job is queued or
 * never will be.
 */
const UNQUEUED_MS = 15 * 60_000;

/**
 * Removes large payloads, and files of jobs, whose job has ended or never existed: its accept was refused, or its process died in between.
 *
 * S1. The payload of a job that is not final, or that may still be queued, is never removed.
 * S2. A question that cannot be answered now is asked again at the next sweep.
 */
export class PayloadSweep {
  private readonly sweeps: Repeated;

  constructor(private readonly ports: PayloadSweepPorts) {
    this.sweeps = new Repeated(() => this.sweep(), ports.clock, SWEEP_MS);
  }

  /** Call only once. */
  start(): void {
    this.sweeps.start();
  }

  /** Waits for the running sweep. Safe to repeat. */
  stop(): Promise<void> {
    return this.sweeps.stop();
  }

  /** Checks all payloads once. */
  async sweep(): Promise<void> {
    const { payloads, telemetry } = this.ports;
    let kept = 0;
    try {
      for await (const piece of payloads.all()) {
        for (const ref of piece) {
          if (this.sweeps.isStopping) return;
          if (await this.isNeeded(ref)) kept += 1;
          else await payloads.remove(ref);
        }
      }
      telemetry.gauge(this.ports.gauge ?? "stored_payloads", kept);
    } catch (error) {
      const level = isOutage(error) ? "warn" : "error";
      telemetry.log(level, "large payloads could not be swept", { error: String(error) });
    }
  }

  private async isNeeded({ tenantId, jobId }: PayloadRef): Promise<boolean> {
    const { clock, directory, queue, eventStore } = this.ports;
    const tenant = await directory.byId(tenantId);
    if (tenant === null) return false;
    const queued = await queue.job(tenant, jobId);
    // What a failed job was to send is copied when its end is recorded: until it has left the queue, that may be to come.
    if (queued !== null) return !isFinal(queued.status) || queued.status === "failed";
    if (isJobId(jobId) && clock.nowMs() - jobTimeMs(jobId) < UNQUEUED_MS) return true;
    const recorded = await eventStore.job(tenantId, jobId);
    if (recorded === null) return false;
    if (recorded.status === "failed") return (await this.ports.keepsFailed?.({ tenantId, jobId })) ?? false;
    return !isFinal(recorded.status);
  }
}
