import type { AppleSigner, GoogleIssuer, WalletTemplate } from "../../domain/channels/wallet.ts";
import type { StoredTemplates, TenantPart } from "../../storage/tenant-part.ts";
import { applePlace, googlePlace, parseAppleSigner, parseGoogleIssuer } from "./credentials.ts";
import { tokenPlace } from "./pass-repository.ts";
import { parseWalletTemplate } from "./stored-template.ts";
import { passes } from "./tables.ts";

interface WalletMembers {
  readonly wallet: {
    /** Null for the platform's signer. */
    readonly apple: AppleSigner | null;
    /** Null for the platform's issuer. */
    readonly google: GoogleIssuer | null;
    readonly templates: ReadonlyMap<string, WalletTemplate>;
    /** The webhook for device registrations, or null. */
    readonly webhookUrl: string | null;
  };
}

declare module "../../domain/tenants/tenant.ts" {
  interface ChannelMembers extends WalletMembers {}
}

const TEMPLATES: StoredTemplates<WalletTemplate> = { parse: parseWalletTemplate };

/** The part of the tenant's snapshot that has its wallet settings. */
export const walletPart: TenantPart<WalletMembers> = {
  templates: { wallet: TEMPLATES },
  tables: [],
  sealed: [
    {
      name: "tokens of passes",
      column: passes.authenticationToken,
      key: [passes.id],
      tenantId: passes.tenantId,
      place: (tenantId, [passId = ""]) => tokenPlace(tenantId, passId),
      isLarge: true,
    },
  ],
  members({ tenant, templates, credentials }) {
    const isCustom = tenant.allowCustom.includes("wallet");
    return {
      wallet: {
        apple: isCustom ? credentials(applePlace(tenant.id), parseAppleSigner) : null,
        google: isCustom ? credentials(googlePlace(tenant.id), parseGoogleIssuer) : null,
        templates: templates(TEMPLATES),
        webhookUrl: tenant.walletWebhookUrl,
      },
    };
  },
};
