import type { Static } from "@sinclair/typebox";
import type { Elysia } from "elysia";
import { ApiError } from "../domain/errors.ts";
import { type Plan, queueShareOf, TENANT_ID } from "../domain/tenant.ts";
import type { FrontDoor } from "../http/front-door.ts";
import { OperatorBody } from "../http/operator-body.ts";
import { operatorRoute } from "../http/operator-route.ts";
import { planBody } from "./body-schemas.ts";

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
      return exchange.json(200, toRecord(await registry.putPlan(toPlan(name, await body.read(door, exchange)))));
    }),
  );
}

type PlanBody = Static<typeof planBody>;

function toPlan(name: string, body: PlanBody): Plan {
  const share = queueShareOf(name);
  return {
    name,
    requestsPerMinute: body.requests_per_minute,
    deliveriesPerSecond: body.deliveries_per_second ?? null,
    queuedJobsMax: body.queued_jobs_max ?? share.queuedJobsMax,
    queuedBytesMax: body.queued_bytes_max ?? share.queuedBytesMax,
    holdMs: body.hold_hours === undefined ? share.holdMs : body.hold_hours * HOUR_MS,
  };
}

const HOUR_MS = 60 * 60 * 1000;

function toRecord(plan: Plan): object {
  return {
    name: plan.name,
    requests_per_minute: plan.requestsPerMinute,
    deliveries_per_second: plan.deliveriesPerSecond,
    queued_jobs_max: plan.queuedJobsMax,
    queued_bytes_max: plan.queuedBytesMax,
    hold_hours: plan.holdMs / HOUR_MS,
  };
}
