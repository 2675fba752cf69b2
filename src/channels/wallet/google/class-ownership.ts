import type { GoogleClassOwners } from "../../../domain/google-classes.ts";
import { isGoogleIssuerShared, type PlatformCredentials } from "../../../domain/platform.ts";
import type { Tenant } from "../../../domain/tenant.ts";
import type { GoogleKind } from "../../../domain/wallet.ts";
import type { Caller, GoogleApi, Refused } from "./google-api.ts";

/** Whose a class is, to the tenant that asks. `unowned`: nobody of ours has used it, and Google may have it or not. */
export type Whose = "ours" | "theirs" | "unowned";

interface Claim {
  readonly tenant: Tenant;
  readonly kind: GoogleKind;
  readonly classId: string;
  readonly caller: Caller;
}

/**
 * Keeps tenants to their own classes where they share the platform's issuer, whose classes Google lets each of them
 * change. On an issuer of its own every class is the tenant's.
 *
 * Invariants:
 * C1. On a shared issuer Google is asked to create or change a class only for its owner, and to insert an object only for
 *     the owner of its class.
 * C2. A class is claimed before Google is asked for it: a process that dies in between leaves an owner without a class, who
 *     may try again, and never a class that its maker cannot reach.
 * C3. A class that Google has and nobody owns (it was made elsewhere) goes to the first tenant that uses it.
 */
export class ClassOwnership {
  constructor(
    private readonly api: GoogleApi,
    private readonly owners: GoogleClassOwners,
    private readonly platform: PlatformCredentials,
  ) {}

  /** Rejects where the registry is away, as all that follow do. */
  async whose(tenant: Tenant, classId: string): Promise<Whose> {
    if (!isGoogleIssuerShared(tenant, this.platform)) return "ours";
    const owner = await this.owners.ownerOf(classId);
    if (owner === null) return "unowned";
    return owner === tenant.tenantId ? "ours" : "theirs";
  }

  /** Makes the class the tenant's where nobody has it, whether Google knows it or not. */
  async claim(tenant: Tenant, classId: string): Promise<"ours" | "theirs"> {
    if (!isGoogleIssuerShared(tenant, this.platform)) return "ours";
    return (await this.owners.claim(classId, tenant.tenantId)) === tenant.tenantId ? "ours" : "theirs";
  }

  /** The same only where Google has the class, so that a misspelt id takes it from nobody; else why it is not known. */
  async claimExisting({ tenant, kind, classId, caller }: Claim): Promise<"ours" | "theirs" | Refused> {
    const whose = await this.whose(tenant, classId);
    if (whose !== "unowned") return whose;
    const held = await this.api.call(caller, { method: "GET", path: [`${kind}Class`, classId] });
    return held.kind === "done" ? this.claim(tenant, classId) : held;
  }
}
