import { QUEUE_SHARE, type Tenant, type TenantDirectory } from "../../src/domain/tenants/tenant.ts";

export function aTenant(overrides: Partial<Tenant> = {}): Tenant {
  return {
    tenantId: "acme",
    shard: 0,
    name: "Acme",
    plan: { name: "pro", requestsPerMinute: 1_000_000, deliveriesPerSecond: null, ...QUEUE_SHARE },
    channels: new Set(["email"]),
    permissions: new Set(["allow_raw_html"]),
    allowCustom: new Set(),
    emailTemplates: new Map(),
    emailSender: null,
    domains: new Map(),
    whatsapp: { sender: null, aliases: new Map(), templates: null },
    wallet: { apple: null, google: null, templates: new Map(), webhookUrl: null },
    ...overrides,
  };
}

export function createDirectory(tenants: readonly Tenant[]): TenantDirectory {
  const byId = new Map(tenants.map((tenant) => [tenant.tenantId, tenant]));
  return { byApiKey: () => null, byId: (tenantId) => byId.get(tenantId) ?? null };
}
