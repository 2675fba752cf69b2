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
 * The classes, which only Google keeps. Rejects with `ApiError`: 400 with what Google says against the class, or where
 * it exists already; 404 where it does not; 500 where credentials are missing or refused, or Google does not answer.
 */
export interface GoogleClasses {
  create(tenant: Tenant, googleClass: GoogleClass): Promise<void>;
  /** Changes the members of `data` that are given. */
  change(tenant: Tenant, googleClass: GoogleClass): Promise<void>;
  /** The class as Google holds it. */
  read(tenant: Tenant, kind: GoogleKind, classId: string): Promise<JsonObject>;
}
