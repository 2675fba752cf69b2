import type { Tenant } from "../tenants/tenant.ts";
import type { AppleSigner, GoogleIssuer } from "./wallet.ts";
import type { WhatsappSender } from "./whatsapp.ts";

/** The platform's own provider credentials, for tenants without credentials of their own. Null: none are configured. */
export interface PlatformCredentials {
  readonly whatsapp: WhatsappSender | null;
  readonly apple: AppleSigner | null;
  readonly google: GoogleIssuer | null;
}

export function resolveWhatsappSender(tenant: Tenant, platform: PlatformCredentials): WhatsappSender | null {
  return tenant.whatsapp.sender ?? platform.whatsapp;
}

export function resolveAppleSigner(tenant: Tenant, platform: PlatformCredentials): AppleSigner | null {
  return tenant.wallet.apple ?? platform.apple;
}

export function resolveGoogleIssuer(tenant: Tenant, platform: PlatformCredentials): GoogleIssuer | null {
  return tenant.wallet.google ?? platform.google;
}

/**
 * Whether tenants share the issuer of the tenant's Google passes: it belongs to the platform, whichever account acts
 * for it.
 */
export function isGoogleIssuerShared(tenant: Tenant, platform: PlatformCredentials): boolean {
  const issuerId = resolveGoogleIssuer(tenant, platform)?.issuerId;
  return issuerId !== undefined && issuerId === platform.google?.issuerId;
}
