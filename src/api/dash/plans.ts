import type { Elysia } from "elysia";
import { ApiError } from "../../core/errors.ts";
import { type Plan, TENANT_ID } from "../../core/tenant.ts";
import type { FrontDoor } from "../front-door.ts";
import { planBody } from "./body-schemas.ts";
import { OperatorBody } from "./operator-body.ts";
import { operatorRoute } from "./operator-route.ts";

/** `/dash/api/plans`: how much a tenant may ask for. */
export function planRoutes(app: Elysia, door: FrontDoor): void {
  const { registry } = door.ports;
  const body = new OperatorBody(planBody);
  app.get("/dash/api/plans", ({ request }) =>
    operatorRoute(door, request, async (exchange) =>
      exchange.json(200, { plans: (await registry.plans()).map(toRecord) }),
    ),
  );
  app.put("/dash/api/plans/:name", ({ request, params: { name } }) =>
    operatorRoute(door, request, async (exchange) => {
      // The router gives null for what is no valid percent-encoding, which is no slug either.
      if (!TENANT_ID.test(name ?? "")) throw new ApiError(400, "a plan's name must be a slug, such as pro");
      const { requests_per_minute, deliveries_per_second } = await body.read(request);
      const plan: Plan = {
        name,
        requestsPerMinute: requests_per_minute,
        deliveriesPerSecond: deliveries_per_second ?? null,
      };
      return exchange.json(200, toRecord(await registry.putPlan(plan)));
    }),
  );
}

function toRecord({ name, requestsPerMinute, deliveriesPerSecond }: Plan): object {
  return { name, requests_per_minute: requestsPerMinute, deliveries_per_second: deliveriesPerSecond };
}
