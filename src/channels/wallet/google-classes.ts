import type { GoogleKind, Unusable } from "../../domain/channels/wallet.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import type { JsonObject } from "../../domain/texts/json.ts";

/** The common part of several Google Wallet passes, as the REST API defines it. `data` contains its `id`. */
export interface GoogleClass {
  readonly kind: GoogleKind;
  readonly classId: string;
  readonly data: JsonObject;
}

/** The class as Google stores it now, or why the call was not done. */
export type GoogleClassAnswer =
  | { readonly kind: "done"; readonly data: JsonObject }
  /** `full`: the tenant has as many as it may. */
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
  /** Whether the tenant's passes may use this class: it is no other tenant's. Does not call Google. */
  isUsable(tenant: Tenant, classId: string): Promise<boolean>;
}

/**
 * Which tenant may use which class, on the issuer that tenants share. A class has at most one owner, permanently.
 * Rejects with `UnavailableError` or `TransportError` if the registry is away.
 */
export interface GoogleClassOwners {
  /** Id of the tenant that owns the class; null: no owner yet. */
  findOwner(classId: string): Promise<string | null>;
  /**
   * Makes the tenant its owner, unless it has one, and returns the current owner; null: there is none, and the tenant has as many
   * classes as it may. Safe to repeat.
   */
  claim(classId: string, tenantId: string): Promise<string | null>;
}
