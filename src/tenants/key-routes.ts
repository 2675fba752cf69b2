import type { Elysia } from "elysia";
import { ApiError } from "../domain/errors.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { noContent, operatorRoute, tenantIdOf } from "../http/operator-route.ts";

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
      await registry.revokeKey(tenantIdOf(params.id), keyIdOf(params.key_id));
      return noContent(exchange);
    }),
  );
}

/** The router gives null for what is no valid percent-encoding. Throws 404 for what cannot be a key's id. */
function keyIdOf(text: string | null): string {
  if (text === null || !/^[\x21-\x7e]{1,128}$/.test(text)) throw new ApiError(404, "there is no such key");
  return text;
}
