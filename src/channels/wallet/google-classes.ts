import type { JsonObject } from "../../domain/json.ts";
import type { Tenant } from "../../domain/tenant.ts";
import type { GoogleKind } from "../../domain/wallet.ts";

/** The common part of several Google Wallet passes, as the REST API defines it. `data` contains its `id`. */
export interface GoogleClass {
  readonly kind: GoogleKind;
  readonly classId: string;
  readonly data: JsonObject;
}

/**
 * The classes, whose content only Google stores. Rejects with `ApiError`: 400 with Google's objection to the class, or
 * if it exists already; 404 if it does not exist; 500 if credentials are missing or refused, or Google does not answer.
 * On the issuer that tenants share, a class of another tenant exists for `create`, and for no other call.
 */
export interface GoogleClasses {
  create(tenant: Tenant, googleClass: GoogleClass): Promise<void>;
  /** Changes the given members of `data`. */
  change(tenant: Tenant, googleClass: GoogleClass): Promise<void>;
  /** The class as Google stores it. */
  read(tenant: Tenant, kind: GoogleKind, classId: string): Promise<JsonObject>;
  /**
   * Rejects with `ApiError` 400 if passes must not use this class because it is another tenant's. Does not call Google.
   */
  requireUsable(tenant: Tenant, classId: string): Promise<void>;
}

/**
 * Which tenant may use which class, on the issuer that tenants share. A class has at most one owner, permanently.
 * Rejects with `UnavailableError` or `TransportError` if the registry is away.
 */
export interface GoogleClassOwners {
  /** Id of the tenant that owns the class; null: no owner yet. */
  ownerOf(classId: string): Promise<string | null>;
  /** Makes the tenant its owner, unless it has one, and returns the current owner. Safe to repeat. */
  claim(classId: string, tenantId: string): Promise<string>;
}
