import type { Elysia } from "elysia";
import { parseAddress } from "../domain/address.ts";
import { ApiError } from "../domain/errors.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { OperatorBody } from "../http/operator-body.ts";
import { noContent, operatorRoute, readPaging, tenantIdOf } from "../http/operator-route.ts";
import { suppressionBody } from "./suppression-body.ts";

/** `/dash/api/tenants/{id}/suppressions`: whom a tenant's messages no longer go to. A change counts at once. */
export function suppressionRoutes(app: Elysia, door: FrontDoor): void {
  const { suppressions } = door.ports;
  const body = new OperatorBody(suppressionBody);
  app.get("/dash/api/tenants/:id/suppressions", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(params.id);
      const { cursor, limit } = readPaging(request);
      const { items, nextCursor } = await suppressions.page(tenantId, cursor, limit);
      return exchange.json(200, { suppressions: items, next_cursor: nextCursor });
    }),
  );
  app.put("/dash/api/tenants/:id/suppressions/:address", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenant = await tenantOf(door, params.id);
      const address = parseAddress(params.address ?? "");
      if (address === null) throw new ApiError(400, "the last part of the path must be one e-mail address, escaped");
      const { reason = "manual" } = await body.read(door, exchange);
      return exchange.json(200, await suppressions.put(tenant, address, reason));
    }),
  );
  app.delete("/dash/api/tenants/:id/suppressions/:address", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenant = await tenantOf(door, params.id);
      const address = parseAddress(params.address ?? "");
      const wasThere = address !== null && (await suppressions.remove(tenant, address));
      if (!wasThere) throw new ApiError(404, "this address is not suppressed");
      return noContent(exchange);
    }),
  );
}

/** Throws 404 where there is no such tenant. */
async function tenantOf(door: FrontDoor, id: string | null): Promise<Tenant> {
  const tenant = await door.ports.directory.byId(tenantIdOf(id));
  if (tenant === null) throw new ApiError(404, "there is no such tenant");
  return tenant;
}
