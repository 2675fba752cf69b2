import type { GoogleContent } from "../../../domain/channels/wallet.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import { isJsonArray, type Json } from "../../../domain/texts/json.ts";
import type { PassStore } from "../passes.ts";
import { isGoogleIssuerShared, type WalletPlatform } from "../platform.ts";

/** An object that a pass must not link to. `unfinished`: it is the tenant's own, but may not exist yet. */
export interface BarredLink {
  readonly objectId: string;
  readonly why: "foreign" | "unfinished";
}

/** Members of an object that name other objects, which Google then displays with it. */
const LINKS = new Set(["linkedobjectids", "linkedofferids"]);

/**
 * Stops tenants that share the platform's issuer from linking their passes to another tenant's objects: Google only
 * checks that the issuer is the same, and every holder of a pass can read its id. A tenant with its own issuer owns
 * every object.
 */
export class LinkedObjects {
  constructor(
    private readonly passes: Pick<PassStore, "holder">,
    private readonly platform: WalletPlatform,
  ) {}

  /** Finds the first forbidden link, or null. Rejects if the registry is unavailable. */
  async barred(tenant: Tenant, content: GoogleContent): Promise<BarredLink | null> {
    if (!isGoogleIssuerShared(tenant, this.platform)) return null;
    for (const serial of linkedIn(content)) {
      const pass = await this.passes.holder({ tenantId: tenant.tenantId, content, serial });
      if (pass === null) return { objectId: serial, why: "foreign" };
      // Until its creation ends, another object may have its id.
      if (pass.state !== "ready") return { objectId: serial, why: "unfinished" };
    }
    return null;
  }
}

/** Lists the objects that the pass names, except itself. Google also reads these member names in snake case. */
function linkedIn({ object }: GoogleContent): ReadonlySet<string> {
  const named = Object.entries(object)
    .filter(([name]) => LINKS.has(name.replaceAll("_", "").toLowerCase()))
    .flatMap(([, value]): readonly Json[] => (isJsonArray(value) ? value : [value]));
  return new Set(named.map(String).filter((id) => id !== object["id"]));
}
