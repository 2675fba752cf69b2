import type { EventReader } from "../../domain/jobs/event-store.ts";
import { isFinal } from "../../domain/jobs/job.ts";
import { KnownWaits } from "../../domain/jobs/known-waits.ts";
import type { PayloadRef, PayloadStore, StoredRef } from "../../domain/jobs/payload-store.ts";
import type { FrontQueue } from "../../domain/jobs/queue.ts";
import { Unjudged } from "../../domain/jobs/unjudged.ts";
import type { RuntimePorts } from "../../domain/runtime-ports.ts";
import { Sweep } from "../../domain/sweep.ts";
import type { TenantDirectory } from "../../domain/tenants/tenant.ts";

export interface PayloadSweepPorts extends RuntimePorts {
  readonly payloads: Pick<PayloadStore, "all" | "removeFound">;
  readonly directory: TenantDirectory;
  readonly queue: Pick<FrontQueue, "job">;
  /**
   * The event store, which this process must be able to read: a job that is in neither the event store nor the queue
   * counts as never accepted.
   */
  readonly eventStore: Pick<EventReader, "job">;
  /** Whether the content of a failed job that has left the queue is kept; absent: of none. */
  keepsFailed?(ref: PayloadRef): Promise<boolean>;
  /** The metric for stored payloads that are needed, default `stored_payloads`. */
  readonly gauge?: string;
}

const SWEEP_MS = 60_000;
/**
 * Longer than an accept can be in flight: this long after its payload was stored, the job is queued or never will be.
 */
const UNQUEUED_MS = 15 * 60_000;

/** A job that waits for its time is checked this often: it may be cancelled, or its tenant deleted. */
const WAITING_LOOK_MS = 60 * 60_000;

/**
 * Removes stored payloads, and files of jobs, whose job has ended or never existed: its accept was refused, or its
 * process died in between.
 *
 * S1. The payload of a job that is not final, or that may still be queued, is never removed.
 * S2. A job whose state cannot be read now is checked again by the next sweep. A problem with one job does not delay
 *     others.
 * S3. A payload's age counts from its storing, not from its job's id: a batch is repeated under its old ids for a day,
 *     and a failed job is retried under its own. A payload that is stored anew while its job is looked up is not
 *     removed: the answer was about the former one.
 */
export class PayloadSweep extends Sweep {
  /** Jobs that wait for a time. */
  private waiting: KnownWaits;

  constructor(private readonly ports: PayloadSweepPorts) {
    super(ports, { everyMs: SWEEP_MS, failure: "large payloads could not be swept" });
    this.waiting = new KnownWaits(ports.clock);
  }

  protected override async work(): Promise<void> {
    const { clock, payloads, telemetry } = this.ports;
    let kept = 0;
    const waiting = new KnownWaits(clock);
    const unjudged = new Unjudged(telemetry, "a large payload could not be judged, and stays");
    for await (const piece of payloads.all()) {
      for (const found of piece) {
        if (this.isStopping) return;
        const { tenantId, jobId } = found;
        const untilMs = await this.settle(found).catch((error: unknown) => {
          unjudged.note(error, { tenant: tenantId, job: jobId });
          return 0;
        });
        if (untilMs === null) continue;
        kept += 1;
        if (untilMs > 0) waiting.note(jobId, untilMs);
      }
    }
    this.waiting = waiting;
    telemetry.gauge(this.ports.gauge ?? "stored_payloads", kept);
  }

  /** Removes the payload if it is not needed. Returns as `neededUntilMs`. */
  private async settle(found: StoredRef): Promise<number | null> {
    const untilMs = this.waiting.untilMs(found.jobId) ?? (await this.neededUntilMs(found));
    if (untilMs === null) await this.ports.payloads.removeFound(found);
    return untilMs;
  }

  /** Returns until when the payload is needed. Null: it is not needed. 0: it is, for an unknown time. */
  private async neededUntilMs({ tenantId, jobId, ageMs }: StoredRef): Promise<number | null> {
    const { clock, directory, queue, eventStore } = this.ports;
    const tenant = await directory.byId(tenantId);
    if (tenant === null) return null;
    const queued = await queue.job(tenant, jobId);
    if (queued !== null) {
      const { status, dueMs = 0 } = queued;
      // A failed job's content is copied when its end is recorded; until the job has left the queue, that may not have
      // happened yet.
      if (isFinal(status)) return status === "failed" ? 0 : null;
      return Math.min(dueMs, clock.nowMs() + WAITING_LOOK_MS);
    }
    if (ageMs < UNQUEUED_MS) return 0;
    const recorded = await eventStore.job(tenantId, jobId);
    if (recorded === null) return null;
    if (recorded.status !== "failed") return isFinal(recorded.status) ? null : 0;
    return (await this.ports.keepsFailed?.({ tenantId, jobId })) ? clock.nowMs() + WAITING_LOOK_MS : null;
  }
}
