import type { ChannelName, QueuedJob } from "../jobs/job.ts";
import type { Outcome } from "../jobs/outcome.ts";
import type { Tenant } from "../tenants/tenant.ts";

/** The destination to which a channel hands its jobs over. */
export interface Relay {
  /** Equal for all jobs that go the same way; never shown, because it may hold credentials. */
  readonly key: string;
  /** For logs, metrics and readiness: names the relay without a secret, for example `smtp.example.com:587`. */
  readonly name: string;
  /** Whether a tenant owns it: then only that tenant's messages depend on it. */
  readonly isOwn: boolean;
}

/**
 * One provider behind one interface: turns one job into one outcome. No queue, no retry loop, no store. It may pool
 * connections inside. Aborting `signal` ends the call; whether the provider has the message is then unknown, and the
 * outcome is `retry`.
 */
export interface Channel {
  readonly name: ChannelName;
  /**
   * Deliveries that it takes at one time from this process on relays that answer promptly, and for tenants without a
   * relay; tenants share them fairly.
   */
  readonly slots: number;
  /** The same for slow or still unknown relays, which have their own slots; absent: the engine's default. */
  readonly patientSlots?: number;
  /** How long a delivery of this channel may last, by its own time limits; absent: `limits.deliveryTimeoutMs`. */
  readonly deliveryMsMax?: number;
  /**
   * Deliveries that it hands to one relay at one time; more would wait inside it, in no fair order. Absent: any number.
   */
  readonly relayConnections?: number;
  /**
   * Whether its provider's later reports name the `providerRef` of a delivery and not the job: then it is remembered.
   * Absent: no.
   */
  readonly reportsNameReference?: boolean;
  /**
   * Checks the content of a job that needs it. Null: it may be delivered. An abort of `signal` ends the call with the
   * outcome `retry`.
   */
  screen?(job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome | null>;
  /**
   * Milliseconds until the provider's pace lets the tenant's sender send again; 0: now. Called when a delivery gets its
   * slot, right before it begins, and again after that time. Tenants that share a sender take turns, and a tenant that
   * does not call again loses its turn. The call itself consumes no capacity; `deliver` does, before it waits for
   * anything.
   */
  paceMs?(tenant: Tenant): number;
  /**
   * Calls `onHandOver` once the content of a `stored` job has been fetched: only from then on does the relay have it.
   */
  deliver(job: QueuedJob, tenant: Tenant, signal: AbortSignal, onHandOver?: () => void): Promise<Outcome>;
  /**
   * Returns the relay or provider that handles the tenant's jobs; an outage affects all tenants that share it. An
   * outcome names it in `relay` exactly when the relay was contacted. Absent or null: the channel has no relay that can
   * be away as a whole.
   */
  findRelay?(tenant: Tenant): Relay | null;
  /**
   * Gives back the resources that were taken when the job was accepted, because it failed for good or its recipient is
   * suppressed. Called before that is recorded, repeatedly until it resolves, and perhaps once more in another process.
   */
  giveBack?(job: QueuedJob): Promise<void>;
}
