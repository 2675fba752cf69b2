import type { ChannelName } from "./jobs/job.ts";
import type { LeaseRole } from "./jobs/queue.ts";

/** A relay or provider that is away, as observed by a process. */
export interface AwayRelay {
  readonly channel: ChannelName;
  /** Its name, without a secret. */
  readonly relay: string;
  /** Whether a tenant owns it: then only that tenant's jobs wait. */
  readonly isOwn: boolean;
  /** How long it has been away. */
  readonly forMs: number;
  /** `half_open`: the next delivery tests whether it is back. */
  readonly state: "open" | "half_open";
  /** Its last reply, or a description of its failure, as tenants may read it. */
  readonly why: string;
  /** Jobs in this process that wait for it. */
  readonly waitingJobs: number;
}

/**
 * The reason why the jobs of a tenant queue wait.
 *
 * | reason | waits for |
 * |---|---|
 * | `turn` | their turn, and all other reasons |
 * | `paused` | an operator, who paused the tenant's deliveries |
 * | `warm_up` | another day: the tenant's new sender has used up this day's allowance |
 * | `pace` | the tenant's own pace: its plan's, or its provider asked it to go slower |
 * | `away` | the tenant's mail server or provider, which does not answer |
 */
export const QUEUE_WAITS = ["turn", "paused", "warm_up", "pace", "away"] as const;
export type QueueWait = (typeof QUEUE_WAITS)[number];

export interface NamedQueue {
  readonly tenantId: string;
  readonly channel: ChannelName;
}

/** A tenant queue whose jobs wait for more than their turn. */
export interface HeldQueue extends NamedQueue {
  readonly waits: QueueWait;
}

/** A relay that is away, as published to other processes. `why` is missing in the status of an earlier release. */
export type Breaker = Omit<AwayRelay, "forMs" | "isOwn" | "why"> & { readonly sinceMs: number; readonly why?: string };

/** The status that a process publishes every few seconds. */
export interface ProcessStatus {
  /** Identifies the process: host, number within its start, process id. */
  readonly name: string;
  readonly roles: readonly string[];
  /** Unix ms. */
  readonly startedAtMs: number;
  readonly toldAtMs: number;
  /** The shards whose jobs it delivers, and those whose events it records. */
  readonly delivers: readonly number[];
  readonly records: readonly number[];
  /** The longest time, in the last few seconds, by which its event loop was late. */
  readonly loopDelayMs: number;
  /** The breakers with the most waiting jobs; a bounded number. */
  readonly breakers: readonly Breaker[];
  /** A bounded number. */
  readonly paused: readonly NamedQueue[];
  /** A bounded number; missing in the status of an earlier release. */
  readonly held?: readonly HeldQueue[];
}

/** Jobs that were accepted on a channel in a minute. */
export interface AcceptedCount {
  /** Unix ms of the minute's begin. */
  readonly minuteMs: number;
  readonly channel: ChannelName;
  readonly jobs: number;
}

export interface KnownStatuses {
  /** The processes with a recent status, ordered by name. */
  readonly statuses: readonly ProcessStatus[];
  /** This hour and the previous one. */
  readonly accepted: readonly AcceptedCount[];
  /** This UTC day. */
  readonly acceptedToday: number;
}

/**
 * Returns the shards whose work in this role is done by no living process. A lease is no evidence of life: it belongs
 * to its owner even after the owner has died, until another process takes it over.
 */
export function ownerlessShards(
  statuses: readonly Pick<ProcessStatus, "delivers" | "records">[],
  role: LeaseRole,
  shards: number,
): readonly number[] {
  const owned = new Set(statuses.flatMap(({ delivers, records }) => (role === "dispatcher" ? delivers : records)));
  return Array.from({ length: shards }, (_, shard) => shard).filter((shard) => !owned.has(shard));
}

/** The statuses that processes publish for each other. Rejects with `TransportError` or `UnavailableError`. */
export interface ProcessStatuses {
  /** Replaces the process's former status, and adds the jobs that it has accepted since. */
  tellStatus(status: ProcessStatus, accepted: readonly AcceptedCount[]): Promise<void>;
  /** Removes the process's status. */
  withdrawStatus(name: string): Promise<void>;
  /** Reads the statuses in one call of bounded size. */
  statuses(): Promise<KnownStatuses>;
}
