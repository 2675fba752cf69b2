import type { Json } from "../../../domain/json.ts";
import type { PassStore } from "../../../domain/passes.ts";
import { isGoogleIssuerShared, type PlatformCredentials } from "../../../domain/platform.ts";
import type { Tenant } from "../../../domain/tenant.ts";
import type { GoogleContent } from "../../../domain/wallet.ts";

/** An object that a pass must not be linked to. `unfinished`: it is the tenant's own, and may not be there yet. */
export interface BarredLink {
  readonly objectId: string;
  readonly why: "foreign" | "unfinished";
}

/** Members of an object that name other objects, which Google then shows with it. */
const LINKS = new Set(["linkedobjectids", "linkedofferids"]);

/**
 * Keeps tenants that share the platform's issuer from linking their passes to others': Google asks only whether the
 * issuer is the same, and whoever has a pass knows its id. On an issuer of its own every object is the tenant's.
 */
export class LinkedObjects {
  constructor(
    private readonly passes: Pick<PassStore, "holder">,
    private readonly platform: PlatformCredentials,
  ) {}

  /** The first link that must not be; null: there is none. Rejects where the registry is away. */
  async barred(tenant: Tenant, content: GoogleContent): Promise<BarredLink | null> {
    if (!isGoogleIssuerShared(tenant, this.platform)) return null;
    for (const serial of linkedIn(content)) {
      const pass = await this.passes.holder({ tenantId: tenant.tenantId, content, serial });
      if (pass === null) return { objectId: serial, why: "foreign" };
      // Until its creation has ended, its id may be taken by somebody else's object.
      if (pass.state !== "ready") return { objectId: serial, why: "unfinished" };
    }
    return null;
  }
}

/** The objects that the pass names, but for itself. Google reads its members' names in snake case as well. */
function linkedIn({ object }: GoogleContent): ReadonlySet<string> {
  const named = Object.entries(object)
    .filter(([name]) => LINKS.has(name.replaceAll("_", "").toLowerCase()))
    .flatMap(([, value]): readonly Json[] => (Array.isArray(value) ? value : [value]));
  return new Set(named.map(String).filter((id) => id !== object["id"]));
}
