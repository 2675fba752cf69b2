import type { AppleSigner, GoogleIssuer } from "../../domain/channels/wallet.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";

/** The platform's own credentials for passes. */
export interface WalletPlatform {
  readonly apple: AppleSigner | null;
  readonly google: GoogleIssuer | null;
}

declare module "../../domain/channels/platform.ts" {
  interface PlatformCredentials extends WalletPlatform {}
}

export function resolveAppleSigner(tenant: Tenant, platform: Pick<WalletPlatform, "apple">): AppleSigner | null {
  return tenant.wallet.apple ?? platform.apple;
}

export function resolveGoogleIssuer(tenant: Tenant, platform: Pick<WalletPlatform, "google">): GoogleIssuer | null {
  return tenant.wallet.google ?? platform.google;
}

/**
 * Whether tenants share the issuer of the tenant's Google passes: it is the platform's, whichever account acts for it.
 */
export function isGoogleIssuerShared(tenant: Tenant, platform: Pick<WalletPlatform, "google">): boolean {
  const issuerId = resolveGoogleIssuer(tenant, platform)?.issuerId;
  return issuerId !== undefined && issuerId === platform.google?.issuerId;
}
