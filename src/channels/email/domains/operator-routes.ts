import type { Elysia } from "elysia";
import type { DomainView } from "../../../domain/domain.ts";
import { ApiError } from "../../../domain/errors.ts";
import type { FrontDoor } from "../../../http/front-door.ts";
import { OperatorBody } from "../../../http/operator-body.ts";
import { noContent, operatorRoute, tenantIdOf } from "../../../http/operator-route.ts";
import { domainBody } from "./domain-body.ts";

/** `/dash/api/tenants/{id}/domains`: registration, and what each check of the last verification found. */
export function operatorDomainRoutes(app: Elysia, door: FrontDoor): void {
  const { domains } = door.ports;
  const body = new OperatorBody(domainBody);
  app.post("/dash/api/tenants/:id/domains", ({ request, params: { id } }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(id);
      const {
        domain,
        relay_enabled: relayEnabled = true,
        smtp_enabled: smtpEnabled = false,
      } = await body.read(door, exchange);
      return exchange.json(201, shown(await domains.register(tenantId, { domain, relayEnabled, smtpEnabled })));
    }),
  );
  app.get("/dash/api/tenants/:id/domains", ({ request, params: { id } }) =>
    operatorRoute(door, request, async (exchange) =>
      exchange.json(200, { domains: (await domains.all(tenantIdOf(id))).map(shown) }),
    ),
  );
  app.get("/dash/api/tenants/:id/domains/:domain", ({ request, params: { id, domain } }) =>
    operatorRoute(door, request, async (exchange) =>
      exchange.json(200, shown(await domains.one(tenantIdOf(id), nameOf(domain)))),
    ),
  );
  app.delete("/dash/api/tenants/:id/domains/:domain", ({ request, params: { id, domain } }) =>
    operatorRoute(door, request, async (exchange) => {
      await domains.delete(tenantIdOf(id), nameOf(domain));
      return noContent(exchange);
    }),
  );
}

/** The domain record as tenants see it, and what is for operators. */
function shown({ record, details }: DomainView): object {
  return { ...record, ...details };
}

/** The router gives null for what is no valid percent-encoding. */
function nameOf(text: string | null): string {
  if (text === null) throw new ApiError(404, "there is no such domain");
  return text;
}
