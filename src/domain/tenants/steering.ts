import type { ChannelName } from "../jobs/job.ts";

/** Operators' decisions about a tenant's jobs, channel by channel. Immutable. */
export interface Steering {
  /** Its jobs wait; new ones are accepted. */
  readonly paused: ReadonlySet<ChannelName>;
  /** New sends are refused; its jobs are delivered. */
  readonly held: ReadonlySet<ChannelName>;
  /** Jobs that were accepted before (unix ms) end as failed. */
  readonly purgedBefore: ReadonlyMap<ChannelName, number>;
  /** When the last pause ended (unix ms). */
  readonly resumedAt: ReadonlyMap<ChannelName, number>;
}

/** The error of a purged job. */
export const PURGED = "purged by an operator";
