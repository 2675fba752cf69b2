import type { Elysia } from "elysia";
import { ApiError } from "../domain/errors.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { OperatorBody } from "../http/operator-body.ts";
import { operatorRoute, readPaging, tenantIdOf } from "../http/operator-route.ts";
import { tokensBody } from "./body-schemas.ts";

/** `/dash/api/tenants/{id}/tokens`: what wallet passes are paid with. */
export function tokenRoutes(app: Elysia, door: FrontDoor): void {
  const { registry } = door.ports;
  const body = new OperatorBody(tokensBody);
  app.post("/dash/api/tenants/:id/tokens", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(params.id);
      const { amount, reason } = await body.read(door, exchange);
      if (amount === 0) throw new ApiError(400, "amount must not be 0");
      return exchange.json(200, await registry.addTokens(tenantId, amount, reason));
    }),
  );
  app.get("/dash/api/tenants/:id/tokens", ({ request, params }) =>
    operatorRoute(door, request, async (exchange) => {
      const tenantId = tenantIdOf(params.id);
      const { cursor, limit } = readPaging(request);
      const { items, nextCursor } = await registry.tokenMovements(tenantId, cursor, limit);
      return exchange.json(200, { movements: items, next_cursor: nextCursor });
    }),
  );
}
