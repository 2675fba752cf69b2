import { type Static, Type } from "@sinclair/typebox";
import { getQueueShare, type Plan, TENANT_ID } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import type { PathParameter } from "../../http/parameters.ts";
import { listSchema } from "../../http/schemas.ts";
import { requireResult } from "../../http/store-results.ts";
import type { TenantRegistry } from "../registry.ts";
import { planBody } from "./body-schemas.ts";

const PlanRecord = Type.Object(
  {
    name: Type.String(),
    requests_per_minute: Type.Integer(),
    deliveries_per_second: Type.Union([Type.Number(), Type.Null()], {
      description: "Null: as fast as the provider takes them.",
    }),
    queued_jobs_max: Type.Integer({
      description: "Unfinished jobs that a tenant may have; beyond it sends are 429.",
    }),
    queued_bytes_max: Type.Integer({ description: "Bytes of the payloads of a tenant's unfinished jobs." }),
    hold_hours: Type.Number({
      description: "How long after its acceptance a job is held while its mail server or provider is away.",
    }),
    tenants: Type.Integer({ description: "How many tenants have it." }),
  },
  { $id: "Plan" },
);

const EXAMPLE = {
  name: "pro",
  requests_per_minute: 1000,
  deliveries_per_second: null,
  queued_jobs_max: 2_000_000,
  queued_bytes_max: 2_147_483_648,
  hold_hours: 72,
  tenants: 12,
} as const;

/** Throws 400 for a text that is no slug. */
const nameParameter: PathParameter<string> = {
  description: "A slug.",
  example: "pro",
  read(text) {
    if (text === null || !TENANT_ID.test(text)) throw new ApiError(400, "a plan's name must be a slug, such as pro");
    return text;
  },
};

/** `/dash/api/plans`: the limits of tenants. */
export function planEndpoints({
  registry,
}: {
  readonly registry: Pick<TenantRegistry, "plans" | "planUse" | "putPlan">;
}): readonly Endpoint[] {
  return [
    operatorEndpoint({
      method: "GET",
      path: "/dash/api/plans",
      name: "operator",
      operation: "listPlans",
      tag: "Plans",
      summary: "List the plans",
      answers: {
        200: {
          description: "All of them.",
          schema: listSchema("PlanList", "plans", PlanRecord),
          examples: [{ plans: [EXAMPLE] }],
        },
      },
      async handle() {
        const use = await registry.planUse();
        return reply(200, { plans: (await registry.plans()).map((plan) => toRecord(plan, use)) });
      },
    }),
    operatorEndpoint({
      method: "PUT",
      path: "/dash/api/plans/:name",
      name: "operator",
      operation: "putPlan",
      audit: {
        body: ["requests_per_minute", "deliveries_per_second", "queued_jobs_max", "queued_bytes_max", "hold_hours"],
      },
      tag: "Plans",
      summary: "Create or change a plan; a share of the queue that is left out is the default",
      params: { name: nameParameter },
      body: planBody,
      answers: { 200: { description: "As it is now.", schema: PlanRecord, examples: [EXAMPLE] } },
      handle: async ({ params: { name }, body }) =>
        reply(200, toRecord(requireResult(await registry.putPlan(toPlan(name, body))), await registry.planUse())),
    }),
  ];
}

function toPlan(name: string, body: Static<typeof planBody>): Plan {
  const share = getQueueShare(name);
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

function toRecord(plan: Plan, use: ReadonlyMap<string, number>): Static<typeof PlanRecord> {
  return {
    name: plan.name,
    requests_per_minute: plan.requestsPerMinute,
    deliveries_per_second: plan.deliveriesPerSecond,
    queued_jobs_max: plan.queuedJobsMax,
    queued_bytes_max: plan.queuedBytesMax,
    hold_hours: plan.holdMs / HOUR_MS,
    tenants: use.get(plan.name) ?? 0,
  };
}
