import type { Config } from "../config/config.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { requireResult } from "../http/store-results.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { untilAnswered } from "../runtime/until-answered.ts";
import type { Registry } from "../storage/registry.ts";

const DEMO = "demo";

/** The tenant that a newcomer tries things with. Its key is known only in the start that creates it. */
export interface DemoTenant {
  readonly exists: boolean;
  readonly apiKey: string | null;
}

export const NO_DEMO: DemoTenant = { exists: false, apiKey: null };

/**
 * Creates a tenant on the first start of the embedded registry, which puts a first e-mail one command away. Only beside the
 * sandbox: somebody who saw its key on a screen must not send real messages.
 */
export async function openDemoTenant(
  { databaseUrl, providers }: Config,
  registry: Registry,
  telemetry: Telemetry,
): Promise<DemoTenant> {
  if (databaseUrl !== null) return NO_DEMO;
  if (providers === "sandbox") return createDemoTenant(registry);
  if ((await keysOfDemo(registry)) > 0) {
    const message =
      'the demo tenant of the sandbox has keys, which send real messages now: revoke them if "demo" is it';
    telemetry.log("warn", message, { revoke: `DELETE /dash/api/tenants/${DEMO}/keys/{key_id}` });
  }
  return NO_DEMO;
}

async function keysOfDemo(registry: Registry): Promise<number> {
  const keys = await untilAnswered(systemClock, () => registry.keys(DEMO));
  return keys.kind === "done" ? keys.value.length : 0;
}

/** Creates the demonstration's tenant unless there are tenants already. */
async function createDemoTenant(registry: Registry): Promise<DemoTenant> {
  const existing = requireResult(await untilAnswered(systemClock, () => registry.tenants(null, 1)));
  if (existing.items.length > 0) {
    const demo = await untilAnswered(systemClock, () => registry.tenant(DEMO));
    return { exists: demo.kind === "done", apiKey: null };
  }
  const created = await registry.createTenant({
    id: DEMO,
    name: "Demo",
    plan: "pro",
    channels: ["email", "whatsapp", "wallet"],
    permissions: ["allow_raw_html"],
    tokens: 100,
  });
  // A request that came in the meantime made it, as the API is served already; or it was deleted, and no tenant is left.
  if (created.kind === "taken") return { exists: created.by === "id", apiKey: null };
  if (created.kind !== "done") throw new Error(`the demo tenant was not created: ${created.kind}`);
  await registry.putTemplate(DEMO, {
    slug: "welcome",
    channel: "email",
    subject: "Welcome, {{.name}}",
    html: "<h1>Welcome, {{.name}}</h1><p>This e-mail came from a template.</p>",
    text: null,
  });
  const { api_key } = requireResult(await registry.createKey(DEMO));
  return { exists: true, apiKey: api_key };
}
