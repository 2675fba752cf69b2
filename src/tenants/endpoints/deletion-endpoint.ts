import { Type } from "@sinclair/typebox";
import type { TenantQueueRemoval } from "../../domain/tenants/erasure.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { failure, OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { queryChoice, queryText, tenantIdParameter } from "../../http/parameters.ts";
import { enumSchema } from "../../http/schemas.ts";
import { noSuch, requireResult } from "../../http/store-results.ts";
import type { TenantRegistry } from "../registry.ts";

interface DeletionPorts {
  readonly registry: Pick<TenantRegistry, "tenant" | "deleteTenant" | "leavingTenant">;
  readonly queue: Pick<TenantQueueRemoval, "unfinishedJobs">;
}

const Deletion = Type.Object(
  {
    id: Type.String(),
    state: enumSchema(["deleting", "deleted"] as const, "`deleted`: only its id and its bills are left."),
    unfinished: Type.Integer({ description: "Jobs that are still ending." }),
  },
  { $id: "TenantDeletion" },
);

const UNFINISHED = failure(
  "TenantHasJobs",
  "Jobs of the tenant are unfinished.",
  "the tenant has 12 unfinished jobs: wait for them, or end them with purge=true",
  { members: { unfinished: 12 } },
);

const query = {
  confirm: { ...queryText("The tenant's id once more."), isRequired: true },
  purge: queryChoice("purge", ["true", "false"], {
    description: "Whether unfinished jobs end as `failed`; without it they are a reason not to delete.",
    absent: "false",
  }),
};

/** `DELETE /dash/api/tenants/{id}`: for good. */
export function deletionEndpoint({ registry, queue }: DeletionPorts): Endpoint {
  return operatorEndpoint({
    method: "DELETE",
    path: "/dash/api/tenants/:id",
    name: "operator",
    operation: "deleteTenant",
    tag: "Tenants",
    summary: "Delete a tenant for good",
    description:
      "Its keys are refused from the answer on, elsewhere within a second. Then everything that it has is removed in the " +
      "background: jobs, history, templates, credentials, domains, passes, devices, webhooks, suppressions. Its bills stay, and its " +
      "id is not given out again. Repeat the call to see how far it is.",
    params: { id: tenantIdParameter },
    query,
    answers: {
      200: {
        description: "It is removed.",
        schema: Deletion,
        examples: [{ id: "acme", state: "deleted", unfinished: 0 }],
      },
      202: {
        description: "It is deleted, and being removed.",
        schema: Deletion,
        examples: [{ id: "acme", state: "deleting", unfinished: 12 }],
      },
    },
    fails: { 404: OPERATOR_NOT_FOUND, 409: UNFINISHED },
    async handle({ params: { id }, query: { confirm, purge } }) {
      if (confirm !== id) throw new ApiError(400, "confirm must be the id of the tenant that is to be deleted");
      const leaving = await registry.leavingTenant(id);
      if (leaving?.isRemoved) return reply(200, { id, state: "deleted", unfinished: 0 });
      if (leaving === null) {
        const { shard } = requireResult(await registry.tenant(id));
        const unfinished = await queue.unfinishedJobs({ tenantId: id, shard });
        if (unfinished > 0 && purge !== "true") {
          const why = `the tenant has ${unfinished} unfinished jobs: wait for them, or end them with purge=true`;
          throw new ApiError(409, why, { unfinished });
        }
        const deleted = await registry.deleteTenant(id);
        // Another call was faster.
        if (deleted.kind === "missing" && (await registry.leavingTenant(id)) === null) throw noSuch("tenant");
      }
      const { shard } = (await registry.leavingTenant(id)) ?? { shard: 0 };
      const unfinished = await queue.unfinishedJobs({ tenantId: id, shard });
      return reply(202, { id, state: "deleting", unfinished });
    },
  });
}
