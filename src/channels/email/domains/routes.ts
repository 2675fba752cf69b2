import type { Elysia } from "elysia";
import type { DomainView } from "../../../domain/domain.ts";
import { ApiError } from "../../../domain/errors.ts";
import type { Tenant } from "../../../domain/tenant.ts";
import type { Exchange } from "../../../http/exchange.ts";
import type { FrontDoor } from "../../../http/front-door.ts";
import { readQuery } from "../../../http/request-query.ts";

/** `/v1/domains`: a tenant's sending domains, the records to publish for them, and their verification. */
export function domainRoutes(app: Elysia, door: FrontDoor): void {
  app.get("/v1/domains", ({ request }) =>
    door.serve("domains", request, async (exchange) => {
      const views = await asTenant(door, exchange, ({ tenantId }) => door.ports.domains.all(tenantId));
      return exchange.json(200, { domains: views.map(({ record }) => record) });
    }),
  );
  app.get("/v1/domains/:domain", ({ request, params: { domain } }) =>
    door.serve("domain", request, async (exchange) => {
      const look = ({ tenantId }: Tenant) => door.ports.domains.one(tenantId, nameOf(domain));
      return exchange.json(200, (await asTenant(door, exchange, look)).record);
    }),
  );
  app.post("/v1/domains/:domain/verify", ({ request, params: { domain } }) =>
    door.serve("verify_domain", request, async (exchange) => {
      const verify = ({ tenantId }: Tenant) => door.ports.domains.verify(tenantId, nameOf(domain));
      return exchange.json(200, (await asTenant(door, exchange, verify)).record);
    }),
  );
}

/** Counts the request before its work begins: a limited tenant must not make the service ask around. */
async function asTenant<T extends DomainView | readonly DomainView[]>(
  door: FrontDoor,
  exchange: Exchange,
  work: (tenant: Tenant) => Promise<T>,
): Promise<T> {
  const tenant = await door.authenticate(exchange);
  await door.admit(exchange, tenant);
  readQuery(exchange.request, []);
  return work(tenant);
}

/** The router gives null for what is no valid percent-encoding. */
function nameOf(text: string | null): string {
  if (text === null) throw new ApiError(404, "there is no such domain");
  return text;
}
