import type { CredentialsRecord, Expiring } from "../domain/channels/credentials.ts";
import type { TrackingChoice } from "../domain/channels/email.ts";
import type { ChannelName, SuppressionReason } from "../domain/jobs/job.ts";
import type { Page } from "../domain/page.ts";
import type { AllOfTenant, Done, Full, Invalid, InvalidCursor, Missing, PageOfTenant } from "../domain/store-result.ts";
import type { Reputation } from "../domain/tenants/reputation.ts";
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
  /** Tracking of its e-mails; an absent member counts as true. */
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

/** Existing tenants only, or also deleted ones, which are still billed. */
export type WhichTenants = "present" | "ever";

/** A deleted tenant, and the state of its removal. */
export interface LeavingTenant {
  readonly tenantId: string;
  readonly shard: number;
  readonly deletedAtMs: number;
  readonly isRemoved: boolean;
}

/** An operator's controls over a tenant's jobs. `purge` ends the jobs accepted so far. */
export type Steer = "pause" | "resume" | "hold" | "release" | "purge";

export interface NewTenant extends TenantChange {
  readonly id?: string;
  readonly name: string;
}

export interface KeyRecord {
  readonly key_id: string;
  /** The first characters of the key, which tell keys apart. */
  readonly prefix: string;
  readonly name: string | null;
  readonly created_at: string;
  /** The last use, to about a minute; null: never used. */
  readonly last_used_at: string | null;
  /** Null: it does not expire. */
  readonly expires_at: string | null;
  readonly scopes: readonly Scope[];
}

export interface KeyOptions {
  readonly name?: string | null;
  /** The time from which requests with the key are refused; null: it does not expire. */
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

/** Conditions of all tenants that need an operator's attention. */
export interface Attention {
  /** Number of tenants with paused deliveries, and with new sends on hold, by channel; zeros are left out. */
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

/** The changes that an erasure made. */
export interface ErasedNames {
  /** Number of rows with the recipient's address. */
  readonly rows: number;
  /** The names with the address that erased names have replaced on the list. */
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
  /** The same on behalf of the tenant, within its share. */
  putOwnSuppression(
    tenantId: string,
    address: string,
    reason: SuppressionReason,
  ): Promise<Done<SuppressionRecord> | Missing<"tenant"> | Full>;
  /**
   * Removes the recipient and resolves to whether it was on the list, under either name. `reason`: only if listed for this
   * reason.
   */
  deleteSuppression(
    tenantId: string,
    address: string,
    reason?: SuppressionReason,
  ): Promise<Done<boolean> | Missing<"tenant">>;
  /**
   * Replaces the recipient on the list by its erased name, for each topic, with the same reason; `isAdded`: adds it for all
   * messages even if the recipient was not listed.
   */
  eraseSuppression(tenantId: string, address: string, isAdded: boolean): Promise<Done<ErasedNames> | Missing<"tenant">>;
  /** Returns the reason for which exactly this name is on the list, or null. */
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

/** The id belongs to an existing or a deleted tenant, or every id tried for the name is taken. */
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

/** Selects tenants of a list. */
export interface TenantFilter {
  /** A part of the id or the name; null: any. */
  readonly find?: string | null;
  /** The plan's name; null: any. */
  readonly plan?: string | null;
}

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
    filter?: TenantFilter,
  ): Promise<Done<Page<TenantRecord>> | InvalidCursor>;
  /**
   * Deletes the tenant: its keys are refused and its jobs fail from then on. Its data is removed afterwards. Safe to repeat.
   */
  deleteTenant(tenantId: string): Promise<Done<LeavingTenant> | Missing<"tenant">>;
  /** Finds a deleted tenant. */
  leavingTenant(tenantId: string): Promise<LeavingTenant | null>;
  /** Returns deleted tenants that are not removed yet, earliest deletion first. */
  leavingTenants(limit: number): Promise<readonly LeavingTenant[]>;
  /** Removes a piece of a deleted tenant's rows in the registry. Resolves to whether all rows are gone. */
  removeOfTenant(tenantId: string): Promise<boolean>;
  /** Records that a deleted tenant's data is removed everywhere, except for its bills. */
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

  reputation(tenantId: string): Promise<Done<Reputation> | Missing<"tenant">>;
  /** Returns the tenants with a state other than `UNGOVERNED`, by id. */
  reputations(): Promise<ReadonlyMap<string, Reputation>>;
  /** Changes the state unless `change` returns the same object. */
  changeReputation(
    tenantId: string,
    change: (state: Reputation) => Reputation,
  ): Promise<Done<{ readonly state: Reputation; readonly isChanged: boolean }> | Missing<"tenant">>;

  /** Returns the key itself, which cannot be read again. */
  createKey(tenantId: string, options?: KeyOptions): Promise<Done<NewKey> | Missing<"tenant">>;
  /** The same on behalf of the tenant, within its share of keys. */
  createOwnKey(tenantId: string, options: KeyOptions): Promise<Done<NewKey> | Missing<"tenant"> | Full>;
  keys(tenantId: string): Promise<AllOfTenant<KeyRecord>>;
  /** `isOwn`: the tenant itself calls, and must keep a key with the scope `manage`. */
  revokeKey(
    tenantId: string,
    keyId: string,
    options?: { readonly isOwn: boolean },
  ): Promise<Done | Missing<"tenant" | "key"> | LastKey>;

  attention(): Promise<Attention>;

  plans(): Promise<readonly Plan[]>;
  /** The number of tenants of each plan; a plan without tenants is absent. */
  planUse(): Promise<ReadonlyMap<string, number>>;
  putPlan(plan: Plan): Promise<Done<Plan> | Invalid>;

  /** Creates the template or replaces it. The caller has checked that its channel can render it. */
  putTemplate(tenantId: string, template: TemplateRecord): Promise<Done<TemplateRecord> | Missing<"tenant"> | Invalid>;
  /** The same on behalf of the tenant, within its share of templates. */
  putOwnTemplate(
    tenantId: string,
    template: TemplateRecord,
  ): Promise<Done<TemplateRecord> | Missing<"tenant"> | Invalid | Full>;
  template(tenantId: string, slug: string): Promise<Done<TemplateRecord> | Missing<"tenant" | "template">>;
  /** Returns the templates of all channels, ordered by slug. */
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

  /** Adds to the stored counts. */
  addUsage(counts: readonly UsageCount[]): Promise<void>;
  usageCounts(query: UsageQuery): Promise<readonly UsageCount[]>;
  tokenUsage(query: UsageQuery): Promise<readonly TokenUsage[]>;
  tokenMovements(tenantId: string, cursor: string | null, limit: number): Promise<PageOfTenant<TokenMovement>>;
}
