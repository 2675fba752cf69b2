import type { ChannelName, QueuedJob } from "./job.ts";
import type { Outcome } from "./outcome.ts";
import type { Tenant } from "./tenant.ts";

/** Where a channel hands its jobs over. */
export interface Relay {
  /** Equal for all jobs that go the same way; not shown to anybody, may hold credentials. */
  readonly key: string;
  /** For logs, metrics and readiness: names it without a secret, for example `smtp.example.com:587`. */
  readonly name: string;
  /** Whether it is a tenant's own: then only that tenant's mail depends on it. */
  readonly isOwn: boolean;
}

/**
 * One provider behind one interface: turns one job into one outcome. No queue, no retry loop, no store. It may pool
 * connections inside. An abort of `signal` ends the call; what the provider then has is unknown, and the outcome `retry`.
 */
export interface Channel {
  readonly name: ChannelName;
  /**
   * Deliveries that it takes at one time from this process on relays that answer promptly, and where it names no relay;
   * tenants share them fairly.
   */
  readonly slots: number;
  /** The same on relays that are slow or not known yet, which have slots of their own; absent: the engine's own number. */
  readonly patientSlots?: number;
  /** Deliveries that it hands to one relay at one time; more would wait in it, in no fair order. Absent: any number. */
  readonly relayConnections?: number;
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
  /** `onHandOver` is called when the content of a job that is `stored` is there: only from then on the relay has it. */
  deliver(job: QueuedJob, tenant: Tenant, signal: AbortSignal, onHandOver?: () => void): Promise<Outcome>;
  /**
   * The relay or provider that the tenant's jobs go to: what is known of its being away holds for all tenants that share
   * it. Absent or null: the channel has nothing that can be away as a whole.
   */
  relayOf?(tenant: Tenant): Relay | null;
  /**
   * Gives back what accepting the job took, because it failed for good. Called before that is written down, again and
   * again until it resolves, and perhaps once more in another process.
   */
  giveBack?(job: QueuedJob): Promise<void>;
}
