import { Type } from "@sinclair/typebox";
import type { ChannelName } from "../../domain/jobs/job.ts";
import { PERMISSIONS } from "../../domain/tenants/tenant.ts";
import { ApiError, about } from "../../http/api-error.ts";
import type { AuditShown } from "../../http/audit.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_CONFLICT, OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { paging, type QueryParameter, queryText, tenantIdParameter } from "../../http/parameters.ts";
import { enumSchema, pageSchema, Timestamp, trackingSchema } from "../../http/schemas.ts";
import { requireResult } from "../../http/store-results.ts";
import type { CreatedTenant, NoSuchPlan, TenantRecord, TenantRegistry } from "../registry.ts";
import { tenantBodySchema, tenantChangeBodySchema } from "./body-schemas.ts";

export type TenantSchema = ReturnType<typeof tenantSchema>;

export function tenantSchema(channels: readonly ChannelName[]) {
  const Channels = Type.Array(enumSchema(channels));
  return Type.Object(
    {
      id: Type.String(),
      name: Type.String(),
      plan: Type.String(),
      channels: Channels,
      permissions: Type.Array(enumSchema(PERMISSIONS)),
      allow_custom: Channels,
      tracking: trackingSchema("Of e-mails, where neither message nor template says; a member that is absent is true."),
      paused: Type.Array(enumSchema(channels), { description: "Channels whose accepted messages wait." }),
      held: Type.Array(enumSchema(channels), { description: "Channels on which new sends are refused." }),
      tokens: Type.Integer({ description: "Balance of wallet tokens." }),
      shard: Type.Integer(),
      created_at: Timestamp,
    },
    { $id: "Tenant" },
  );
}

export const EXAMPLE = {
  id: "acme",
  name: "Acme",
  plan: "free",
  channels: ["email"],
  permissions: [],
  allow_custom: [],
  tracking: {},
  paused: [],
  held: [],
  tokens: 0,
  shard: 7,
  created_at: "2026-11-21T07:30:00Z",
} as const;

function tenantPageSchema(Tenant: TenantSchema) {
  return {
    description: "One page.",
    schema: pageSchema("TenantPage", "tenants", Tenant),
    examples: [{ tenants: [EXAMPLE], next_cursor: null }],
  } as const;
}

/** The members of a new tenant in the audit log. */
export const NEW_TENANT_SHOWN: AuditShown = {
  body: ["id", "name", "plan", "channels", "permissions", "allow_custom", "tracking", "tokens"],
  answer: ["id"],
  newTenant: "id",
};

type Tenants = Pick<TenantRegistry, "createTenant" | "tenants" | "tenant" | "changeTenant">;

/** `/dash/api/tenants`: the tenants, with their channels and permissions. */
export function tenantEndpoints(
  { registry }: { readonly registry: Tenants },
  Tenant: TenantSchema,
  channels: readonly ChannelName[],
): readonly Endpoint[] {
  return [
    operatorEndpoint({
      method: "POST",
      path: "/dash/api/tenants",
      name: "operator",
      operation: "createTenant",
      audit: NEW_TENANT_SHOWN,
      tag: "Tenants",
      summary: "Create a tenant",
      body: tenantBodySchema(channels),
      answers: { 201: { description: "The new tenant.", schema: Tenant, examples: [EXAMPLE] } },
      fails: { 409: OPERATOR_CONFLICT },
      handle: async ({ body }) => reply(201, createdTenant(await registry.createTenant(body))),
    }),
    operatorEndpoint({
      method: "GET",
      path: "/dash/api/tenants",
      name: "operator",
      operation: "listTenants",
      tag: "Tenants",
      summary: "List the tenants",
      query: { find: tenantPart, plan: queryText("Only tenants of this plan."), ...paging },
      answers: { 200: tenantPageSchema(Tenant) },
      async handle({ query: { find, plan, cursor, limit } }) {
        const { items, nextCursor } = requireResult(await registry.tenants(cursor, limit, "present", { find, plan }));
        return reply(200, { tenants: items, next_cursor: nextCursor });
      },
    }),
    operatorEndpoint({
      method: "GET",
      path: "/dash/api/tenants/:id",
      name: "operator",
      operation: "getTenant",
      tag: "Tenants",
      summary: "One tenant",
      params: { id: tenantIdParameter },
      answers: { 200: { description: "The tenant.", schema: Tenant, examples: [EXAMPLE] } },
      fails: { 404: OPERATOR_NOT_FOUND },
      handle: async ({ params: { id } }) => reply(200, requireResult(await registry.tenant(id))),
    }),
    changeTenant(registry, channels, Tenant),
  ];
}

/** No id or name is longer. */
const PART_CHARS_MAX = 200;

const tenantPart: QueryParameter<string | null> = {
  description: "Only tenants whose id or name has this part, in capitals or not.",
  schema: Type.String({ maxLength: PART_CHARS_MAX }),
  example: "acme",
  read(text) {
    const part = text?.trim() ?? "";
    if (part.length > PART_CHARS_MAX) throw new ApiError(400, `find has at most ${PART_CHARS_MAX} characters`);
    if (part.includes("\0")) throw new ApiError(400, "find must not contain control characters");
    return part === "" ? null : part;
  },
};

function changeTenant(registry: Tenants, channels: readonly ChannelName[], Tenant: TenantSchema): Endpoint {
  return operatorEndpoint({
    method: "PATCH",
    path: "/dash/api/tenants/:id",
    name: "operator",
    operation: "changeTenant",
    audit: { body: ["name", "plan", "channels", "permissions", "allow_custom", "tracking", "tokens"] },
    tag: "Tenants",
    summary: "Change a tenant",
    description: "`tokens` is the new balance; the difference is a movement. The id cannot be changed.",
    params: { id: tenantIdParameter },
    body: tenantChangeBodySchema(channels),
    answers: { 200: { description: "As it is now.", schema: Tenant, examples: [{ ...EXAMPLE, plan: "pro" }] } },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle({ params: { id }, body: { id: named = id, ...change } }) {
      if (named !== id) throw new ApiError(400, "id cannot be changed");
      const changed = await registry.changeTenant(id, change);
      if (changed.kind === "no_such_plan") throw noSuchPlan(changed);
      return reply(200, requireResult(changed));
    },
  });
}

/** Throws an `ApiError`: 409 if the tenant exists, 400 for settings that it cannot have. */
export function createdTenant(result: CreatedTenant): TenantRecord {
  if (result.kind === "taken" && result.by === "deleted") {
    throw new ApiError("already_exists", "This id was used by a deleted tenant, and is not given out again.");
  }
  if (result.kind === "taken") throw new ApiError("already_exists", `There is a tenant of this ${result.by} already.`);
  if (result.kind === "no_such_plan") throw noSuchPlan(result);
  return requireResult(result);
}

function noSuchPlan({ plan }: NoSuchPlan): ApiError {
  return new ApiError(about("plan"), `There is no plan ${JSON.stringify(plan.slice(0, 63))}.`);
}
