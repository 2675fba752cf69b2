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
  /**
   * Milliseconds until the tenant's sender may be used again, by the provider's pace; 0: now. Asked before each delivery,
   * and again after that time: tenants that share a sender are given turns, and who does not ask again loses its own.
   * It takes nothing, `deliver` does, before it waits for anything.
   */
  paceMs?(tenant: Tenant): number;
  deliver(job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome>;
  /**
   * Gives back what accepting the job took, because it failed for good. Called before that is written down, again and
   * again until it resolves, and perhaps once more in another process.
   */
  giveBack?(job: QueuedJob): Promise<void>;
}
