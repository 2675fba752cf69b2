import type { ChannelName } from "../jobs/job.ts";
import type { GovernedLevel } from "./reputation.ts";
import type { Steering } from "./steering.ts";

export const TENANT_ID = /^[a-z0-9][a-z0-9-]{0,62}$/;

export const PERMISSIONS = ["allow_raw_html"] as const;
export type Permission = (typeof PERMISSIONS)[number];

export const SCOPES = ["send", "read", "manage"] as const;
/** A permission of an API key: to send, to read what was sent, or to change the tenant's settings in the service. */
export type Scope = (typeof SCOPES)[number];
export const ALL_SCOPES: ReadonlySet<Scope> = new Set(SCOPES);

/** An API key that may be used, without the key itself. */
export interface ApiKey {
  readonly keyId: string;
  readonly scopes: ReadonlySet<Scope>;
}

/** The caller that an API key identifies. */
export interface KeyHolder {
  readonly tenant: Tenant;
  readonly key: ApiKey;
}

export interface Plan {
  readonly name: string;
  readonly requestsPerMinute: number;
  /** Null: as fast as the provider accepts them. */
  readonly deliveriesPerSecond: number | null;
  /** Unfinished jobs that a tenant may have, and the total bytes of their payloads. */
  readonly queuedJobsMax: number;
  readonly queuedBytesMax: number;
  /** How long after its acceptance a job is held while its relay is away. */
  readonly holdMs: number;
}

/** A plan's default share of the queue. */
export type QueueShare = Pick<Plan, "queuedJobsMax" | "queuedBytesMax" | "holdMs">;

const HOUR_MS = 60 * 60 * 1000;
const MIB = 1024 * 1024;

export const QUEUE_SHARE: QueueShare = { queuedJobsMax: 2_000_000, queuedBytesMax: 2048 * MIB, holdMs: 72 * HOUR_MS };
/** Share of the plan `free`. */
export const FREE_QUEUE_SHARE: QueueShare = {
  queuedJobsMax: 100_000,
  queuedBytesMax: 256 * MIB,
  holdMs: 72 * HOUR_MS,
};

export function getQueueShare(planName: string): QueueShare {
  return planName === "free" ? FREE_QUEUE_SHARE : QUEUE_SHARE;
}

/** Locates a tenant's part of the queue. */
export interface TenantRef {
  readonly tenantId: string;
  readonly shard: number;
}

/** Everything that the hot path needs about a tenant, at most a second old. Immutable. */
export interface Tenant extends TenantRef, ChannelMembers {
  readonly name: string;
  readonly plan: Plan;
  readonly channels: ReadonlySet<ChannelName>;
  readonly permissions: ReadonlySet<Permission>;
  /** Channels on which the tenant may use credentials of its own. */
  readonly allowCustom: ReadonlySet<ChannelName>;
  /** Absent: no operator has paused, held or purged anything. */
  readonly steering?: Steering;
  /** The level at which its e-mail is governed; absent: it is not. */
  readonly reputation?: GovernedLevel;
}

/** The channels' own members of a tenant: each channel's folder adds its own with `declare module`. */
export interface ChannelMembers {}

/**
 * Tenants by key and by id, from memory while fresh. A plain return value (no promise) costs no iteration of the event
 * loop; a promise is a load. Rejects with `UnavailableError` when the registry cannot be reached and no usable copy is
 * in memory.
 */
export interface TenantDirectory {
  /**
   * Returns the tenant that has this API key, and the key's permissions; null: no tenant has it, or it has expired.
   */
  byApiKey(apiKey: string): KeyHolder | null | Promise<KeyHolder | null>;
  byId(tenantId: string): Tenant | null | Promise<Tenant | null>;
  /** Returns the tenant from memory, null if it is known to be gone; undefined: it would have to be loaded. */
  byIdNow?(tenantId: string): Tenant | null | undefined;
}

/** Notifies every process that its cached data about a tenant is out of date. A hint: it can be lost, never wrong. */
export interface ChangeFeed {
  /** `tenantId` null: all tenants (a plan changed). Never rejects. */
  announce(tenantId: string | null): void;
  onChange(listener: (tenantId: string | null) => void): () => void;
}
