import type { JsonObject } from "./json.ts";
import type { Tenant } from "./tenant.ts";
import type { GoogleKind } from "./wallet.ts";

/** What passes of Google's wallet have in common, as the REST API knows it. `data` carries its `id`. */
export interface GoogleClass {
  readonly kind: GoogleKind;
  readonly classId: string;
  readonly data: JsonObject;
}

/**
 * The classes, whose content only Google keeps. Rejects with `ApiError`: 400 with what Google says against the class, or
 * where it exists already; 404 where it does not; 500 where credentials are missing or refused, or Google does not answer.
 * On the issuer that tenants share, a class of another tenant exists for `create`, and for no other call.
 */
export interface GoogleClasses {
  create(tenant: Tenant, googleClass: GoogleClass): Promise<void>;
  /** Changes the members of `data` that are given. */
  change(tenant: Tenant, googleClass: GoogleClass): Promise<void>;
  /** The class as Google holds it. */
  read(tenant: Tenant, kind: GoogleKind, classId: string): Promise<JsonObject>;
  /** Rejects with `ApiError` 400 where passes may not be of this class: it is another tenant's. Google is not asked. */
  requireUsable(tenant: Tenant, classId: string): Promise<void>;
}

/**
 * Which tenant may use which class, on the issuer that tenants share. A class has one owner at most, for good. Rejects with
 * `UnavailableError` or `TransportError` where the registry is away.
 */
export interface GoogleClassOwners {
  /** Id of the tenant that owns the class; null: nobody yet. */
  ownerOf(classId: string): Promise<string | null>;
  /** Makes the tenant its owner, unless it has one, and answers who owns it now. Safe to repeat. */
  claim(classId: string, tenantId: string): Promise<string>;
}
