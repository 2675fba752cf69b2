import type { WhatsappSender } from "../../domain/channels/whatsapp.ts";
import type { Tenant } from "../../domain/tenants/tenant.ts";

/** The platform's own sender. */
export interface WhatsappPlatform {
  readonly whatsapp: WhatsappSender | null;
}

declare module "../../domain/channels/platform.ts" {
  interface PlatformCredentials extends WhatsappPlatform {}
}

export function resolveWhatsappSender(tenant: Tenant, platform: WhatsappPlatform): WhatsappSender | null {
  return tenant.whatsapp.sender ?? platform.whatsapp;
}
