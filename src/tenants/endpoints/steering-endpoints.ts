import { Type } from "@sinclair/typebox";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { TenantRef } from "../../domain/tenants/tenant.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import { enumSchema } from "../../http/schemas.ts";
import { requireResult } from "../../http/store-results.ts";
import type { Steer, TenantRegistry } from "../registry.ts";
import { steeringBodySchema } from "./body-schemas.ts";
import { EXAMPLE, type TenantSchema } from "./tenant-endpoints.ts";

/** The queue's part of a purge. */
export interface Purging {
  /**
   * Makes the tenant's parked jobs on these channels due, and returns about how many of its jobs are unfinished. Safe to
   * repeat.
   */
  hastenParked(tenant: TenantRef, channels: readonly ChannelName[]): Promise<number>;
}

interface SteeringPorts {
  readonly registry: Pick<TenantRegistry, "steerTenant">;
  readonly purging: Purging;
}

type Step = Exclude<Steer, "purge">;

const SAID: Readonly<
  Record<Step, { readonly operation: string; readonly summary: string; readonly description: string }>
> = {
  pause: {
    operation: "pauseTenant",
    summary: "Pause a tenant's deliveries",
    description: "Accepted messages wait and cost no attempts; new ones are accepted. Deliveries in flight end.",
  },
  resume: { operation: "resumeTenant", summary: "Resume a tenant's deliveries", description: "They go on at once." },
  hold: {
    operation: "holdTenant",
    summary: "Refuse a tenant's new sends",
    description:
      "They are answered with 403; operators can still test its templates. Accepted messages are still delivered.",
  },
  release: {
    operation: "releaseTenant",
    summary: "Accept a tenant's sends again",
    description: "From the answer on, elsewhere within a second.",
  },
};

/** `/dash/api/tenants/{id}/pause` and the like: an operator's controls over all of a tenant's jobs. */
export function steeringEndpoints(
  ports: SteeringPorts,
  Tenant: TenantSchema,
  channels: readonly ChannelName[],
): readonly Endpoint[] {
  const steps: readonly Step[] = ["pause", "resume", "hold", "release"];
  return [...steps.map((step) => stepEndpoint(ports, { step, Tenant, channels })), purgeEndpoint(ports, channels)];
}

function stepEndpoint(
  { registry }: SteeringPorts,
  { step, Tenant, channels }: { step: Step; Tenant: TenantSchema; channels: readonly ChannelName[] },
): Endpoint {
  const given = step === "pause" || step === "resume" ? { paused: ["email"] as const } : { held: ["email"] as const };
  const after = step === "pause" || step === "hold" ? given : {};
  return operatorEndpoint({
    method: "POST",
    path: `/dash/api/tenants/:id/${step}`,
    name: "operator",
    tag: "Tenants",
    ...SAID[step],
    params: { id: tenantIdParameter },
    body: steeringBodySchema(channels),
    answers: { 200: { description: "As it is now.", schema: Tenant, examples: [{ ...EXAMPLE, ...after }] } },
    fails: { 404: OPERATOR_NOT_FOUND },
    handle: async ({ params: { id }, body }) =>
      reply(200, requireResult(await registry.steerTenant(id, step, body.channels ?? channels))),
  });
}

function purgeEndpoint({ registry, purging }: SteeringPorts, channels: readonly ChannelName[]): Endpoint {
  const Purge = Type.Object(
    {
      channels: Type.Array(enumSchema(channels)),
      unfinished: Type.Integer({
        description: "Jobs that were unfinished at that moment, deliveries in flight included.",
      }),
    },
    { $id: "Purge" },
  );
  return operatorEndpoint({
    method: "POST",
    path: "/dash/api/tenants/:id/purge",
    name: "operator",
    operation: "purgeTenant",
    tag: "Tenants",
    summary: "End a tenant's unfinished jobs",
    description:
      "Jobs accepted so far end as `failed` with the error `purged by an operator`, also while the tenant is paused; " +
      "tokens are given back. Deliveries in flight end as they end.",
    params: { id: tenantIdParameter },
    body: steeringBodySchema(channels),
    answers: {
      200: {
        description: "They are ending.",
        schema: Purge,
        examples: [{ channels: ["email", "whatsapp", "wallet"], unfinished: 1042 }],
      },
    },
    fails: { 404: OPERATOR_NOT_FOUND },
    async handle({ params: { id }, body }) {
      const purged = body.channels ?? channels;
      const { shard } = requireResult(await registry.steerTenant(id, "purge", purged));
      // After the registry: a job that becomes due must see the purge.
      return reply(200, {
        channels: [...purged],
        unfinished: await purging.hastenParked({ tenantId: id, shard }, purged),
      });
    },
  });
}
