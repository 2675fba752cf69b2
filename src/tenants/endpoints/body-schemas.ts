import { Type } from "@sinclair/typebox";
import type { ChannelName } from "../../domain/jobs/job.ts";
import { PERMISSIONS, TENANT_ID } from "../../domain/tenants/tenant.ts";
import { oneLine, trackingSchema } from "../../http/schemas.ts";
import { planLimits } from "../limits.ts";

/**
 * Bodies of the operator API. A schema's description appears in the API document and in errors, as the field's requirement.
 * Unknown fields are refused.
 */

const STRICT = { additionalProperties: false } as const;

function channelsSchema(known: readonly ChannelName[]) {
  const channel = Type.Union(
    known.map((name) => Type.Literal(name)),
    { description: `one of ${known.join(", ")}` },
  );
  return Type.Array(channel, { uniqueItems: true, description: `a list of channels, each once` });
}

const permissions = Type.Array(
  Type.Union(
    PERMISSIONS.map((name) => Type.Literal(name)),
    { description: `one of ${PERMISSIONS.join(", ")}` },
  ),
  { uniqueItems: true, description: "a list of permissions, each once" },
);
const tracking = trackingSchema(
  "an object with opens and clicks, each true or false: of e-mails, where neither message nor template says",
);
const name = oneLine("1 to 200 characters without control characters", 200, 1);
const plan = Type.String({ pattern: TENANT_ID.source, description: "the name of a plan" });
const id = Type.String({
  pattern: TENANT_ID.source,
  description: "a slug of 1 to 63 lower-case letters, digits and hyphens, which does not begin with a hyphen",
});
const tokens = Type.Integer({ minimum: 0, maximum: 1_000_000_000, description: "an integer from 0 to 1000000000" });

/** Body of a new tenant that may use some of these channels. */
export function tenantBodySchema(known: readonly ChannelName[]) {
  const channels = channelsSchema(known);
  return Type.Object(
    {
      id: Type.Optional(id),
      name,
      plan: Type.Optional(plan),
      channels: Type.Optional(channels),
      permissions: Type.Optional(permissions),
      allow_custom: Type.Optional(channels),
      tracking: Type.Optional(tracking),
      tokens: Type.Optional(tokens),
    },
    {
      ...STRICT,
      examples: [{ name: "Acme", plan: "pro", channels: ["email"], permissions: ["allow_raw_html"] }],
    },
  );
}

/** Body of a change. It accepts the members of a new tenant, also its id, which does not change. */
export function tenantChangeBodySchema(known: readonly ChannelName[]) {
  const channels = channelsSchema(known);
  return Type.Object(
    {
      id: Type.Optional(id),
      name: Type.Optional(name),
      plan: Type.Optional(plan),
      channels: Type.Optional(channels),
      permissions: Type.Optional(permissions),
      allow_custom: Type.Optional(channels),
      tracking: Type.Optional(tracking),
      tokens: Type.Optional(tokens),
    },
    {
      ...STRICT,
      minProperties: 1,
      description: "an object with at least one field to change",
      examples: [{ plan: "pro" }],
    },
  );
}

/** Body of a step that concerns a tenant's jobs on some channels; absent: on all. */
export function steeringBodySchema(known: readonly ChannelName[]) {
  return Type.Object(
    { channels: Type.Optional(channelsSchema(known)) },
    { ...STRICT, description: "an object", examples: [{}, { channels: [known[0] ?? ""] }] },
  );
}

function optionalWhole(maximum: number) {
  return Type.Optional(Type.Integer({ minimum: 1, maximum, description: `an integer from 1 to ${maximum}` }));
}

export const planBody = Type.Object(
  {
    requests_per_minute: Type.Integer({
      minimum: 1,
      maximum: planLimits.requestsPerMinuteMax,
      description: `an integer from 1 to ${planLimits.requestsPerMinuteMax}`,
    }),
    deliveries_per_second: Type.Optional(
      Type.Union([Type.Number({ exclusiveMinimum: 0, maximum: planLimits.deliveriesPerSecondMax }), Type.Null()], {
        description: "a number above 0, or null for as fast as the provider takes them",
      }),
    ),
    queued_jobs_max: optionalWhole(planLimits.queuedJobsMax),
    queued_bytes_max: optionalWhole(planLimits.queuedBytesMax),
    hold_hours: optionalWhole(planLimits.holdHoursMax),
  },
  {
    ...STRICT,
    examples: [
      {
        requests_per_minute: 1000,
        deliveries_per_second: 50,
        queued_jobs_max: 500_000,
        queued_bytes_max: 1_073_741_824,
        hold_hours: 24,
      },
    ],
  },
);

export const tokensBody = Type.Object(
  {
    amount: Type.Integer({
      minimum: -1_000_000_000,
      maximum: 1_000_000_000,
      description: "an integer other than 0, up to 1000000000 either way",
    }),
    reason: oneLine("1 to 200 characters without control characters", 200, 1),
  },
  { ...STRICT, examples: [{ amount: 500, reason: "order 1042" }] },
);
