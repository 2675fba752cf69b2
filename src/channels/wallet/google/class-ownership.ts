import { isGoogleIssuerShared, type PlatformCredentials } from "../../../domain/channels/platform.ts";
import type { GoogleKind } from "../../../domain/channels/wallet.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import type { GoogleClassOwners } from "../google-classes.ts";
import type { Caller, GoogleApi, Refused } from "./google-api.ts";

/** Who owns a class, as seen by the asking tenant. `unowned`: no tenant has used it; Google may or may not have it. */
export type Whose = "ours" | "theirs" | "unowned";

/** `full`: nobody owns it, and the tenant has as many classes as it may. */
export type Claimed = "ours" | "theirs" | "full";

interface Claim {
  readonly tenant: Tenant;
  readonly kind: GoogleKind;
  readonly classId: string;
  readonly caller: Caller;
}

/**
 * Limits tenants that share the platform's issuer to their own classes: Google lets each of them change all of its
 * classes. A tenant with its own issuer owns every class.
 *
 * Invariants:
 * C1. On a shared issuer, Google is asked to create or change a class only for its owner, and to insert an object only
 *     for the owner of its class.
 * C2. A class is claimed before Google is called: a process that dies in between leaves an owner without a class, who
 *     can try again, but never a class out of its creator's reach.
 * C3. A class that Google has but nobody owns (it was created elsewhere) goes to the first tenant that uses it.
 */
export class ClassOwnership {
  constructor(
    private readonly api: GoogleApi,
    private readonly owners: GoogleClassOwners,
    private readonly platform: PlatformCredentials,
  ) {}

  /** Rejects if the registry is away, as do all methods below. */
  async whose(tenant: Tenant, classId: string): Promise<Whose> {
    if (!isGoogleIssuerShared(tenant, this.platform)) return "ours";
    const owner = await this.owners.findOwner(classId);
    if (owner === null) return "unowned";
    return owner === tenant.tenantId ? "ours" : "theirs";
  }

  /** Gives the class to the tenant if it has no owner, whether or not Google has it. */
  async claim(tenant: Tenant, classId: string): Promise<Claimed> {
    if (!isGoogleIssuerShared(tenant, this.platform)) return "ours";
    const owner = await this.owners.claim(classId, tenant.tenantId);
    if (owner === null) return "full";
    return owner === tenant.tenantId ? "ours" : "theirs";
  }

  /**
   * Like `claim`, but only if Google has the class, so a misspelt id takes a class from nobody; otherwise Google's
   * refusal.
   */
  async claimExisting({ tenant, kind, classId, caller }: Claim): Promise<Claimed | Refused> {
    const whose = await this.whose(tenant, classId);
    if (whose !== "unowned") return whose;
    const held = await this.api.call(caller, { method: "GET", path: [`${kind}Class`, classId] });
    return held.kind === "done" ? this.claim(tenant, classId) : held;
  }
}
