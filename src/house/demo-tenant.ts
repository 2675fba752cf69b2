import type { Registry } from "../core/registry.ts";

/** The tenant that the first start makes, so that a first e-mail is one command away. Null where there are tenants. */
export async function createDemoTenant(registry: Registry): Promise<{ apiKey: string } | null> {
  const existing = await registry.tenants(null, 1);
  if (existing.items.length > 0) return null;
  await registry.createTenant({
    id: "demo",
    name: "Demo",
    plan: "pro",
    channels: ["email", "whatsapp", "wallet"],
    permissions: ["allow_raw_html"],
    tokens: 100,
  });
  await registry.putEmailTemplate("demo", {
    slug: "welcome",
    channel: "email",
    subject: "Welcome, {{.name}}",
    html: "<h1>Welcome, {{.name}}</h1><p>This e-mail came from a template.</p>",
    text: null,
  });
  const { api_key } = await registry.createKey("demo");
  return { apiKey: api_key };
}
