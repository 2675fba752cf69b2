import type { GoogleKind } from "../../../domain/channels/wallet.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import type { GoogleClassOwners } from "../google-classes.ts";
import { isGoogleIssuerShared, type WalletPlatform } from "../platform.ts";
import type { Caller, GoogleApi, Refused } from "./google-api.ts";

/** The owner of a class from a tenant's perspective. `unowned`: no tenant has used it; Google may or may not have it. */
export type Whose = "ours" | "theirs" | "unowned";

/** `full`: it has no owner, and the tenant has reached its limit of classes. */
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
 * C1. On a shared issuer, a class is created or changed at Google only for its owner, and an object is inserted only
 *     for the owner of its class.
 * C2. A class is claimed before Google is called: a process that dies in between leaves an owner without a class, who
 *     can try again, but never a class out of its creator's reach.
 * C3. A class that exists at Google without an owner (it was created elsewhere) goes to the first tenant that uses it.
 */
export class ClassOwnership {
  constructor(
    private readonly api: GoogleApi,
    private readonly owners: GoogleClassOwners,
    private readonly platform: WalletPlatform,
  ) {}

  /** Rejects if the registry is unavailable, as do all methods below. */
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
   * Like `claim`, but only if Google has the class, so a misspelt id claims no other tenant's future class; otherwise
   * returns Google's refusal.
   */
  async claimExisting({ tenant, kind, classId, caller }: Claim): Promise<Claimed | Refused> {
    const whose = await this.whose(tenant, classId);
    if (whose !== "unowned") return whose;
    const held = await this.api.call(caller, { method: "GET", path: [`${kind}Class`, classId] });
    return held.kind === "done" ? this.claim(tenant, classId) : held;
  }
}
