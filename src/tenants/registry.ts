import type { CredentialsRecord, Expiring } from "../domain/channels/credentials.ts";
import type { TrackingChoice } from "../domain/channels/email.ts";
import type { ChannelName, SuppressionReason } from "../domain/jobs/job.ts";
import type { Page } from "../domain/page.ts";
import type { AllOfTenant, Done, Full, Invalid, InvalidCursor, Missing, PageOfTenant } from "../domain/store-result.ts";
import type { Suppression, SuppressionRecord } from "../domain/tenants/suppressions.ts";
import type { TemplateRecord } from "../domain/tenants/template-record.ts";
import type { Permission, Plan, Scope } from "../domain/tenants/tenant.ts";
import type { UsageCount } from "./usage-counter.ts";
import type { TokenUsage, UsageQuery } from "./usage-repository.ts";

/** A tenant as the operator sees it. */
export interface TenantRecord {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  readonly channels: readonly ChannelName[];
  readonly permissions: readonly Permission[];
  readonly allow_custom: readonly ChannelName[];
  /** Of its e-mails; a member that is absent is true. */
  readonly tracking: TrackingChoice;
  /** Channels whose accepted messages wait. */
  readonly paused: readonly ChannelName[];
  /** Channels on which new sends are refused. */
  readonly held: readonly ChannelName[];
  /** Balance of wallet tokens. */
  readonly tokens: number;
  readonly shard: number;
  /** ISO 8601 UTC. */
  readonly created_at: string;
}

export interface TenantChange {
  readonly tracking?: TrackingChoice;
  readonly name?: string;
  readonly plan?: string;
  readonly channels?: readonly ChannelName[];
  readonly permissions?: readonly Permission[];
  readonly allow_custom?: readonly ChannelName[];
  /** The balance of wallet tokens. */
  readonly tokens?: number;
}

/** Those that are there, or also those that were deleted, who are still billed. */
export type WhichTenants = "present" | "ever";

/** A tenant that leaves, and how far that is. */
export interface LeavingTenant {
  readonly tenantId: string;
  readonly shard: number;
  readonly deletedAtMs: number;
  readonly isRemoved: boolean;
}

/** What an operator does to a tenant's jobs. `purge` ends those accepted so far. */
export type Steer = "pause" | "resume" | "hold" | "release" | "purge";

export interface NewTenant extends TenantChange {
  readonly id?: string;
  readonly name: string;
}

export interface KeyRecord {
  readonly key_id: string;
  /** The first characters of the key, which distinguish keys. */
  readonly prefix: string;
  readonly name: string | null;
  readonly created_at: string;
  /** To about a minute; null: never. */
  readonly last_used_at: string | null;
  /** Null: it does not expire. */
  readonly expires_at: string | null;
  readonly scopes: readonly Scope[];
}

export interface KeyOptions {
  readonly name?: string | null;
  /** From then on, requests with the key are refused; null: it does not expire. */
  readonly expiresAt?: Date | null;
  /** Null: all. */
  readonly scopes?: readonly Scope[] | null;
}

/** The tenant would be left without a key that allows `manage`. */
export interface LastKey {
  readonly kind: "last";
}

export interface NewKey {
  readonly key_id: string;
  /** The key itself. */
  readonly api_key: string;
}

/** What of all tenants needs an operator's eye. */
export interface Attention {
  /** How many tenants' deliveries are paused, and new sends are on hold, by channel; none: left out. */
  readonly paused: ReadonlyMap<ChannelName, number>;
  readonly held: ReadonlyMap<ChannelName, number>;
  /** API keys in use that expire within 30 days, by their names or first characters: the 50 that expire first. */
  readonly expiringKeys: readonly { readonly tenantId: string; readonly name: string; readonly expiresAtMs: number }[];
}

export interface TokenMovement {
  readonly amount: number;
  readonly reason: string;
  readonly job_id: string | null;
  readonly balance: number;
  readonly created_at: string;
}

/** What an erasure has changed. */
export interface ErasedNames {
  /** How many had the recipient's address. */
  readonly rows: number;
  /** The names with the address in whose place erased names are on the list now. */
  readonly names: readonly string[];
}

/** The recipients to whom tenants must not send, by their names on the list. Safe to repeat. */
export interface SuppressionRegistry {
  /** Adds the recipient, or changes the reason. A recipient that was erased stays under its erased name, which is returned. */
  putSuppression(
    tenantId: string,
    address: string,
    reason: SuppressionReason,
  ): Promise<Done<SuppressionRecord> | Missing<"tenant">>;
  /** The same for the tenant itself, within its share. */
  putOwnSuppression(
    tenantId: string,
    address: string,
    reason: SuppressionReason,
  ): Promise<Done<SuppressionRecord> | Missing<"tenant"> | Full>;
  /** Whether the recipient was on the list, under whichever name. `reason`: for this one alone. */
  deleteSuppression(
    tenantId: string,
    address: string,
    reason?: SuppressionReason,
  ): Promise<Done<boolean> | Missing<"tenant">>;
  /**
   * Puts the recipient's erased name in its place on the list, for each topic, with the same reason; `isAdded`: for all messages
   * also where the recipient was not on it.
   */
  eraseSuppression(tenantId: string, address: string, isAdded: boolean): Promise<Done<ErasedNames> | Missing<"tenant">>;
  /** Why the recipient of this very name is on the list, or null. */
  suppressionReason(tenantId: string, address: string): Promise<SuppressionReason | null>;
  /** A tenant's list, or one recipient's part of it, ordered by address and topic. */
  suppressions(
    tenantId: string,
    cursor: string | null,
    limit: number,
    address?: string,
  ): Promise<PageOfTenant<SuppressionRecord>>;
  /** Suppressions of a shard's tenants after the given one, in a fixed order; none: that was the last page. */
  suppressionsOfShard(shard: number, after: Suppression | null): Promise<readonly Suppression[]>;
}

/** A tenant was to have a plan that does not exist. */
export interface NoSuchPlan {
  readonly kind: "no_such_plan";
  readonly plan: string;
}

/** There is a tenant of this id, or was one that was deleted, or there is one of every id that was tried for the name. */
export interface TenantTaken {
  readonly kind: "taken";
  readonly by: "id" | "name" | "deleted";
}

export type CreatedTenant = Done<TenantRecord> | Invalid | NoSuchPlan | TenantTaken;

export type MovedTokens =
  | Done<{ readonly balance: number }>
  | Missing<"tenant">
  | Invalid
  /** The balance, which would fall below zero or become too large. */
  | { readonly kind: "out_of_range"; readonly balance: number };

/**
 * The tenants' part of the registry. All processes see every change within a second. Rejects with `UnavailableError` (no
 * effect) or `TransportError` (effect unknown) if the registry is away.
 */
export interface TenantRegistry extends SuppressionRegistry {
  createTenant(tenant: NewTenant): Promise<CreatedTenant>;
  tenant(tenantId: string, which?: WhichTenants): Promise<Done<TenantRecord> | Missing<"tenant">>;
  tenants(
    cursor: string | null,
    limit: number,
    which?: WhichTenants,
    /** Only those whose id or name has this part; null: all. */
    find?: string | null,
  ): Promise<Done<Page<TenantRecord>> | InvalidCursor>;
  /**
   * From then on there is no such tenant: its keys are refused and its jobs fail. What it has is removed afterwards. Safe to
   * repeat.
   */
  deleteTenant(tenantId: string): Promise<Done<LeavingTenant> | Missing<"tenant">>;
  /** A tenant that was deleted. */
  leavingTenant(tenantId: string): Promise<LeavingTenant | null>;
  /** Tenants that were deleted and not removed, the first ones first. */
  leavingTenants(limit: number): Promise<readonly LeavingTenant[]>;
  /** Removes a piece of what a deleted tenant has in the registry. Resolves to whether nothing is left. */
  removeOfTenant(tenantId: string): Promise<boolean>;
  /** Nothing is left of a deleted tenant anywhere, but for what it is billed for. */
  tenantRemoved(tenantId: string): Promise<void>;
  changeTenant(
    tenantId: string,
    change: TenantChange,
  ): Promise<Done<TenantRecord> | Missing<"tenant"> | Invalid | NoSuchPlan>;
  /** Safe to repeat; a repeated purge also ends the jobs accepted in between. */
  steerTenant(
    tenantId: string,
    steer: Steer,
    channels: readonly ChannelName[],
  ): Promise<Done<TenantRecord> | Missing<"tenant">>;

  /** Returns the key itself, which cannot be read again. */
  createKey(tenantId: string, options?: KeyOptions): Promise<Done<NewKey> | Missing<"tenant">>;
  /** The same for the tenant itself, within its share of keys. */
  createOwnKey(tenantId: string, options: KeyOptions): Promise<Done<NewKey> | Missing<"tenant"> | Full>;
  keys(tenantId: string): Promise<AllOfTenant<KeyRecord>>;
  /** `isOwn`: the tenant itself does it, and keeps a key that allows `manage`. */
  revokeKey(
    tenantId: string,
    keyId: string,
    options?: { readonly isOwn: boolean },
  ): Promise<Done | Missing<"tenant" | "key"> | LastKey>;

  attention(): Promise<Attention>;

  plans(): Promise<readonly Plan[]>;
  putPlan(plan: Plan): Promise<Done<Plan> | Invalid>;

  /** Creates the template or replaces it. The caller has checked that its channel can render it. */
  putTemplate(tenantId: string, template: TemplateRecord): Promise<Done<TemplateRecord> | Missing<"tenant"> | Invalid>;
  /** The same for the tenant itself, within its share of templates. */
  putOwnTemplate(
    tenantId: string,
    template: TemplateRecord,
  ): Promise<Done<TemplateRecord> | Missing<"tenant"> | Invalid | Full>;
  template(tenantId: string, slug: string): Promise<Done<TemplateRecord> | Missing<"tenant" | "template">>;
  /** Of all channels, ordered by slug. */
  templates(tenantId: string): Promise<AllOfTenant<TemplateRecord>>;
  deleteTemplate(tenantId: string, slug: string): Promise<Done | Missing<"tenant" | "template">>;

  /** A tenant's own credentials, without secrets, ordered by kind. */
  credentials(tenantId: string): Promise<AllOfTenant<CredentialsRecord>>;
  findCredentials(tenantId: string, kind: string): Promise<Done<CredentialsRecord> | Missing<"tenant" | "credentials">>;
  deleteCredentials(tenantId: string, kind: string): Promise<Done | Missing<"tenant" | "credentials">>;

  /** The webhook for device registrations; null: none. The caller has checked the address. */
  putWalletWebhook(tenantId: string, url: string | null): Promise<Done | Missing<"tenant">>;

  /** Adds (or, if negative, takes) tokens. */
  addTokens(tenantId: string, amount: number, reason: string): Promise<MovedTokens>;
  tenantCount(): Promise<number>;
  /** Keys and credentials in use that expire before then, or have expired; soonest first, a bounded number. */
  expiring(before: Date): Promise<readonly Expiring[]>;

  /** Adds to what is stored. */
  addUsage(counts: readonly UsageCount[]): Promise<void>;
  usageCounts(query: UsageQuery): Promise<readonly UsageCount[]>;
  tokenUsage(query: UsageQuery): Promise<readonly TokenUsage[]>;
  tokenMovements(tenantId: string, cursor: string | null, limit: number): Promise<PageOfTenant<TokenMovement>>;
}
