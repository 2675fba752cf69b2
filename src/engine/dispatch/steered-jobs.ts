import { lifeBeganMs } from "../../domain/ids.ts";
import type { ChannelName, QueuedJob } from "../../domain/jobs/job.ts";
import type { Settlement } from "../../domain/jobs/queue.ts";
import { PURGED } from "../../domain/tenants/steering.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { givenUp } from "./settlement.ts";

export function isPaused(tenant: Tenant | null, channel: ChannelName): boolean {
  return tenant?.steering?.paused.has(channel) === true;
}

/** Returns the time (unix ms) before which accepted jobs are to end; null: no operator has purged the tenant queue. */
export function purgedBeforeMs(tenant: Tenant | null, channel: ChannelName): number | null {
  return tenant?.steering?.purgedBefore.get(channel) ?? null;
}

/**
 * Returns when the job's hold for a relay that is away begins: at its acceptance or its retry, or at the end of the
 * last pause. Time without a try of the relay does not count.
 */
export function holdBeginsMs(job: QueuedJob, tenant: Tenant | null): number {
  return Math.max(lifeBeganMs(job), tenant?.steering?.resumedAt.get(job.channel) ?? 0);
}

/** Ends a purged job. A report that waits with it turns this into a success: its provider has the message. */
export function purged(job: QueuedJob): Settlement {
  return { ...givenUp(job, PURGED), cause: "purged" };
}
