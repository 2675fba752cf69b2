import type { Elysia } from "elysia";
import type { FrontDoor } from "../front-door.ts";
import { noContent, operatorRoute, tenantIdOf } from "./operator-route.ts";

/** `/dash/api/tenants/{id}/keys`: a key is shown once, when it is made. */
export function keyRoutes(app: Elysia, door: FrontDoor): void {
  const { registry } = door.ports;
  app.post("/dash/api/tenants/:id/keys", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) =>
      exchange.json(201, await registry.createKey(tenantIdOf(params.id))),
    ),
  );
  app.get("/dash/api/tenants/:id/keys", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) =>
      exchange.json(200, { keys: await registry.keys(tenantIdOf(params.id)) }),
    ),
  );
  app.delete("/dash/api/tenants/:id/keys/:key_id", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      await registry.revokeKey(tenantIdOf(params.id), params.key_id);
      return noContent(exchange);
    }),
  );
}
