import type { ChannelName, SuppressionReason } from "../domain/job.ts";
import type { Page } from "../domain/page.ts";
import type { Suppression, SuppressionRecord } from "../domain/suppressions.ts";
import type { Permission, Plan } from "../domain/tenant.ts";
import type { TemplateRecord } from "../http/template-kind.ts";

/** A tenant as the operator sees it. */
export interface TenantRecord {
  readonly id: string;
  readonly name: string;
  readonly plan: string;
  readonly channels: readonly ChannelName[];
  readonly permissions: readonly Permission[];
  readonly allow_custom: readonly ChannelName[];
  /** Balance of wallet tokens. */
  readonly tokens: number;
  readonly shard: number;
  /** ISO 8601 UTC. */
  readonly created_at: string;
}

export interface TenantChange {
  readonly name?: string;
  readonly plan?: string;
  readonly channels?: readonly ChannelName[];
  readonly permissions?: readonly Permission[];
  readonly allow_custom?: readonly ChannelName[];
}

export interface NewTenant extends TenantChange {
  readonly id?: string;
  readonly name: string;
  readonly tokens?: number;
}

export interface KeyRecord {
  readonly key_id: string;
  /** The first characters of the key, which distinguish keys. */
  readonly prefix: string;
  readonly created_at: string;
}

export interface TokenMovement {
  readonly amount: number;
  readonly reason: string;
  readonly job_id: string | null;
  readonly balance: number;
  readonly created_at: string;
}

/** The recipients to whom tenants must not send. Addresses are normalised. Safe to repeat. */
export interface SuppressionRegistry {
  /** Adds the recipient, or changes the reason. Rejects with `ApiError` 404 when there is no such tenant. */
  putSuppression(tenantId: string, address: string, reason: SuppressionReason): Promise<SuppressionRecord>;
  /** Whether the recipient was on the list. Rejects with `ApiError` 404 when there is no such tenant. */
  deleteSuppression(tenantId: string, address: string): Promise<boolean>;
  /** Why the recipient is on the list, or null. */
  suppressionReason(tenantId: string, address: string): Promise<SuppressionReason | null>;
  /** A tenant's list, ordered by address. */
  suppressions(tenantId: string, cursor: string | null, limit: number): Promise<Page<SuppressionRecord>>;
  /** Suppressions of a shard's tenants after the given one, in a fixed order; none: that was the last page. */
  suppressionsOfShard(shard: number, after: Suppression | null): Promise<readonly Suppression[]>;
}

/**
 * The tenants' part of the registry. A tenant that does not exist is an `ApiError` 404, a name that is taken or a
 * state that forbids the call 409, an unknown plan 400. All processes see every change within a second.
 */
export interface TenantRegistry extends SuppressionRegistry {
  createTenant(tenant: NewTenant): Promise<TenantRecord>;
  tenant(tenantId: string): Promise<TenantRecord>;
  tenants(cursor: string | null, limit: number): Promise<Page<TenantRecord>>;
  changeTenant(tenantId: string, change: TenantChange): Promise<TenantRecord>;

  /** Returns the key itself, which cannot be read again. */
  createKey(tenantId: string): Promise<{ key_id: string; api_key: string }>;
  keys(tenantId: string): Promise<readonly KeyRecord[]>;
  revokeKey(tenantId: string, keyId: string): Promise<void>;

  plans(): Promise<readonly Plan[]>;
  putPlan(plan: Plan): Promise<Plan>;

  /** Creates the template or replaces it. The caller has checked that its channel can render it. */
  putTemplate(tenantId: string, template: TemplateRecord): Promise<TemplateRecord>;
  template(tenantId: string, slug: string): Promise<TemplateRecord>;
  /** Of all channels, ordered by slug. */
  templates(tenantId: string): Promise<readonly TemplateRecord[]>;
  deleteTemplate(tenantId: string, slug: string): Promise<void>;

  /** The webhook for device registrations; null: none. The caller has checked the address. */
  putWalletWebhook(tenantId: string, url: string | null): Promise<void>;

  /** Adds (or, if negative, takes) tokens; 409 when the balance would fall below zero. */
  addTokens(tenantId: string, amount: number, reason: string): Promise<{ balance: number }>;
  tokenMovements(tenantId: string, cursor: string | null, limit: number): Promise<Page<TokenMovement>>;
}
