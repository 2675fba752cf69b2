import { Type } from "@sinclair/typebox";
import { parseRecipient } from "../domain/email.ts";
import { SUPPRESSION_REASONS } from "../domain/job.ts";
import { isErasedName, type SuppressionRecord } from "../domain/suppressions.ts";
import type { Tenant, TenantDirectory } from "../domain/tenant.ts";
import { ApiError } from "../http/api-error.ts";
import { type Endpoint, endpoint, operatorEndpoint, reply } from "../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../http/failures.ts";
import { OperatorBody } from "../http/operator-body.ts";
import { paging, pathText, readQuery, tenantIdParameter } from "../http/parameters.ts";
import { enumOf, pageOf, Timestamp } from "../http/schemas.ts";
import { noSuch, resultOf } from "../http/store-results.ts";
import type { SuppressionList } from "./suppression-list.ts";

/** What is shown of an erased recipient. */
const ERASED = "(erased)";

const Suppression = Type.Object(
  {
    address: Type.String({
      description: `In lower case: addresses are compared without regard to case. \`${ERASED}\`: the address itself is no longer stored.`,
    }),
    reason: enumOf(SUPPRESSION_REASONS),
    created_at: Timestamp,
  },
  { $id: "Suppression" },
);

const EXAMPLE = { address: "ann@example.com", reason: "manual", created_at: "2026-11-21T07:30:00Z" } as const;

const suppressionBody = Type.Object(
  {
    reason: Type.Optional(
      Type.Union(
        SUPPRESSION_REASONS.map((reason) => Type.Literal(reason)),
        { description: `one of ${SUPPRESSION_REASONS.join(", ")}; by default manual` },
      ),
    ),
  },
  { additionalProperties: false, examples: [{ reason: "manual" }] },
);

const params = {
  id: tenantIdParameter,
  address: { ...pathText("One e-mail address, escaped.", "ann@example.com"), isPersonal: true },
};

interface Ports {
  readonly suppressions: Pick<SuppressionList, "put" | "remove" | "page">;
  readonly directory: Pick<TenantDirectory, "byId">;
}

/**
 * `/dash/api/tenants/{id}/suppressions`: the addresses that a tenant's messages no longer go to. A change takes effect at once.
 */
export function suppressionEndpoints({ suppressions, directory }: Ports): readonly Endpoint[] {
  return [
    operatorEndpoint({
      method: "GET",
      path: "/dash/api/tenants/:id/suppressions",
      name: "operator",
      operation: "listSuppressions",
      tag: "Tenants",
      summary: "Whom the tenant's messages no longer go to, in the order of addresses",
      params: { id: tenantIdParameter },
      query: paging,
      answers: {
        200: {
          description: "One page.",
          schema: pageOf("SuppressionPage", "suppressions", Suppression),
          examples: [{ suppressions: [EXAMPLE], next_cursor: null }],
        },
      },
      fails: { 404: OPERATOR_NOT_FOUND },
      async handle({ params: { id }, query: { cursor, limit } }) {
        const { items, nextCursor } = resultOf(await suppressions.page(id, cursor, limit));
        return reply(200, { suppressions: items.map(shown), next_cursor: nextCursor });
      },
    }),
    putSuppression({ suppressions, directory }),
    operatorEndpoint({
      method: "DELETE",
      path: "/dash/api/tenants/:id/suppressions/:address",
      name: "operator",
      operation: "deleteSuppression",
      tag: "Tenants",
      summary: "Send to this address again",
      params,
      answers: { 204: { description: "Done.", schema: null } },
      fails: { 404: OPERATOR_NOT_FOUND },
      async handle({ params: { id, address: text } }) {
        const tenant = await tenantOf(directory, id);
        const address = parseRecipient(text);
        const wasThere = address !== null && resultOf(await suppressions.remove(tenant, address));
        if (!wasThere) throw new ApiError(404, "this address is not suppressed");
        return reply(204, null);
      },
    }),
  ];
}

/** An unknown tenant is reported first, whatever else is wrong with the call, because the tenant is looked up first. */
function putSuppression({ suppressions, directory }: Ports): Endpoint {
  const body = new OperatorBody(suppressionBody);
  return endpoint({
    method: "PUT",
    path: "/dash/api/tenants/:id/suppressions/:address",
    name: "operator",
    operation: "putSuppression",
    tag: "Tenants",
    summary: "Send nothing to this address any more",
    caller: "operator",
    params,
    body: { schema: suppressionBody },
    answers: { 200: { description: "As it is now.", schema: Suppression, examples: [EXAMPLE] } },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle(door, exchange, raw) {
      const tenant = await tenantOf(directory, params.id.read(raw["id"] ?? null));
      const address = parseRecipient(params.address.read(raw["address"] ?? null));
      if (address === null) throw new ApiError(400, "the last part of the path must be one e-mail address, escaped");
      readQuery(exchange.request, []);
      const { reason = "manual" } = await body.read(door, exchange);
      return reply(200, shown(resultOf(await suppressions.put(tenant, address, reason))));
    },
  });
}

function shown(record: SuppressionRecord): SuppressionRecord {
  return isErasedName(record.address) ? { ...record, address: ERASED } : record;
}

/** Throws 404 if there is no such tenant. */
async function tenantOf(directory: Ports["directory"], id: string): Promise<Tenant> {
  const tenant = await directory.byId(id);
  if (tenant === null) throw noSuch("tenant");
  return tenant;
}
