import type { EndReason, SuppressionReason } from "./job.ts";
import type { Fenced, Lease } from "./queue.ts";
import type { TenantRef } from "./tenant.ts";

/** A recipient that a tenant's messages no longer go to, as the operator sees it. */
export interface SuppressionRecord {
  /** Normalised (`normaliseAddress`): addresses are compared case-insensitively. Of an erased recipient: its erased name. */
  readonly address: string;
  readonly reason: SuppressionReason;
  /** ISO 8601 UTC: when the suppression began. */
  readonly created_at: string;
}

/** A recipient that was erased is on the list under its keyed hash, behind this: no recipient is such a text. */
export const ERASED_NAME = "sha:";

export function isErasedName(address: string): boolean {
  return address.startsWith(ERASED_NAME);
}

/** An entry of a shard's index. For the address `ERASED_NAME`, the reason is the key of the tenant's erased names. */
export interface IndexedSuppression {
  readonly tenantId: string;
  readonly address: string;
  readonly reason: string;
}

/** A suppression of a shard's tenant. */
export interface Suppression extends IndexedSuppression {
  readonly tenantId: string;
  readonly address: string;
  readonly reason: SuppressionReason;
}

/** The queue's index of the list, which `pull` consults. Safe to repeat. */
export interface SuppressionIndex {
  putSuppression(tenant: TenantRef, address: string, reason: string): Promise<void>;
  removeSuppression(tenant: TenantRef, address: string): Promise<void>;
  /** Whether the recipient was erased since then (unix ms), for as long as a message from before may wait. */
  wasErasedSince(tenant: TenantRef, address: string, sinceMs: number): Promise<boolean>;
  /**
   * Fills the index of a shard whose queue never had it. Suppressions that are put or removed in the meantime stand.
   * `isLast` marks the index as complete; a complete index ignores the call.
   */
  loadSuppressions(
    lease: Lease,
    entries: readonly IndexedSuppression[],
    isLast: boolean,
  ): Promise<"loading" | "loaded" | Fenced>;
}

/** Looks up recipients beside a job's own, whom `pull` looks up. Rejects with `UnavailableError` or `TransportError`. */
export interface SuppressionLookup {
  /**
   * Those of the normalised addresses that a message accepted then (unix ms) must not go to, and why. Who was erased since is
   * among them, suppressed or not.
   */
  suppressedAmong(
    tenant: TenantRef,
    addresses: readonly string[],
    acceptedMs: number,
  ): Promise<ReadonlyMap<string, EndReason>>;
}
