import type { ChannelMembers } from "../../domain/tenant.ts";
import type { WalletTemplate } from "../../domain/wallet.ts";
import type { StoredTemplates, TenantPart } from "../../storage/tenant-part.ts";
import { applePlace, googlePlace, parseAppleSigner, parseGoogleIssuer } from "./credentials.ts";
import { parseWalletTemplate } from "./stored-template.ts";

const TEMPLATES: StoredTemplates<WalletTemplate> = { parse: parseWalletTemplate };

/** The tenant's wallet settings that are kept in memory. */
export const walletPart: TenantPart<Pick<ChannelMembers, "wallet">> = {
  templates: { wallet: TEMPLATES },
  tables: [],
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
