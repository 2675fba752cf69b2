import type { SuppressionReason } from "./job.ts";
import type { Fenced, Lease } from "./queue.ts";
import type { TenantRef } from "./tenant.ts";

/** A recipient that a tenant's messages no longer go to, as the operator sees it. */
export interface SuppressionRecord {
  /** Normalised (`normaliseAddress`): addresses are compared case-insensitively. */
  readonly address: string;
  readonly reason: SuppressionReason;
  /** ISO 8601 UTC: when the suppression began. */
  readonly created_at: string;
}

/** An entry of a shard's index. */
export interface Suppression {
  readonly tenantId: string;
  readonly address: string;
  readonly reason: SuppressionReason;
}

/** The queue's index of the list, which `pull` consults. Safe to repeat. */
export interface SuppressionIndex {
  putSuppression(tenant: TenantRef, address: string, reason: SuppressionReason): Promise<void>;
  removeSuppression(tenant: TenantRef, address: string): Promise<void>;
  /**
   * Fills the index of a shard whose queue never had it. Suppressions that are put or removed in the meantime stand.
   * `isLast` marks the index as complete; a complete index ignores the call.
   */
  loadSuppressions(
    lease: Lease,
    entries: readonly Suppression[],
    isLast: boolean,
  ): Promise<"loading" | "loaded" | Fenced>;
}
