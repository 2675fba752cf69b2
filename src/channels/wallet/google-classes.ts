import type { GoogleKind, Unusable } from "../../domain/channels/wallet.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { JsonObject } from "../../domain/texts/json.ts";

/** The common part of several Google Wallet passes, as the REST API defines it. `data` contains its `id`. */
export interface GoogleClass {
  readonly kind: GoogleKind;
  readonly classId: string;
  readonly data: JsonObject;
}

/** The class as stored by Google, or the reason why the call failed. */
export type GoogleClassAnswer =
  | { readonly kind: "done"; readonly data: JsonObject }
  /** `full`: the tenant has reached its limit. */
  | { readonly kind: "exists" | "missing" | "full" }
  /** `said`: Google's objection to the class, perhaps empty. */
  | { readonly kind: "refused"; readonly said: string }
  /** Credentials are missing or refused, or Google does not answer. */
  | ({ readonly kind: "unusable" } & Unusable);

/**
 * The classes, whose content only Google stores. On the issuer that tenants share, a class of another tenant exists for
 * `create`, and for no other call.
 */
export interface GoogleClasses {
  create(tenant: Tenant, googleClass: GoogleClass): Promise<GoogleClassAnswer>;
  /** Changes the given members of `data`. */
  change(tenant: Tenant, googleClass: GoogleClass): Promise<GoogleClassAnswer>;
  read(tenant: Tenant, kind: GoogleKind, classId: string): Promise<GoogleClassAnswer>;
  /** Whether the tenant's passes may use this class because no other tenant owns it. Does not call Google. */
  isUsable(tenant: Tenant, classId: string): Promise<boolean>;
}

/**
 * The owners of classes on the issuer that tenants share. A class has at most one owner, permanently. Rejects with
 * `UnavailableError` or `TransportError` if the registry is unavailable.
 */
export interface GoogleClassOwners {
  /** Finds the tenant that owns the class; null if it has no owner yet. */
  findOwner(classId: string): Promise<string | null>;
  /**
   * Makes the tenant its owner, unless it has one, and returns the current owner; null if it has none and the tenant
   * has reached its limit of classes. Safe to repeat.
   */
  claim(classId: string, tenantId: string): Promise<string | null>;
}
