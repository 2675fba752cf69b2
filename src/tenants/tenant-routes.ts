import type { Elysia } from "elysia";
import type { FrontDoor } from "../http/front-door.ts";
import { OperatorBody } from "../http/operator-body.ts";
import { operatorRoute, readPaging, tenantIdOf } from "../http/operator-route.ts";
import { tenantBody, tenantChangeBody } from "./body-schemas.ts";

/** `/dash/api/tenants`: who may send, and what. */
export function tenantRoutes(app: Elysia, door: FrontDoor): void {
  const { registry } = door.ports;
  const newTenant = new OperatorBody(tenantBody);
  const change = new OperatorBody(tenantChangeBody);
  app.post("/dash/api/tenants", ({ request }) =>
    operatorRoute(door, request, async (exchange) =>
      exchange.json(201, await registry.createTenant(await newTenant.read(door, exchange))),
    ),
  );
  app.get("/dash/api/tenants", ({ request }) =>
    operatorRoute(door, request, async (exchange) => {
      const { cursor, limit } = readPaging(request);
      const { items, nextCursor } = await registry.tenants(cursor, limit);
      return exchange.json(200, { tenants: items, next_cursor: nextCursor });
    }),
  );
  app.get("/dash/api/tenants/:id", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => exchange.json(200, await registry.tenant(tenantIdOf(params.id)))),
  );
  app.patch("/dash/api/tenants/:id", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(params.id);
      return exchange.json(200, await registry.changeTenant(tenantId, await change.read(door, exchange)));
    }),
  );
}
