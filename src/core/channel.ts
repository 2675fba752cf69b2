import type { ChannelName, QueuedJob } from "./job.ts";
import type { Outcome } from "./outcome.ts";
import type { Tenant } from "./tenant.ts";

/**
 * One provider behind one interface: turns one job into one outcome. No queue, no retry loop, no store. It may pool
 * connections inside. An abort of `signal` ends the call; what the provider then has is unknown, and the outcome `retry`.
 */
export interface Channel {
  readonly name: ChannelName;
  /** Deliveries that it takes at one time from this process; tenants share them fairly. */
  readonly slots: number;
  /**
   * Looks at the content of a job that needs it. Null: it may be delivered. An abort of `signal` ends the call with the
   * outcome `retry`.
   */
  screen?(job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome | null>;
  deliver(job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome>;
}
