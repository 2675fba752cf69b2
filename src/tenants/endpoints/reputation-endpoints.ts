import { type Static, Type } from "@sinclair/typebox";
import type { Clock } from "../../domain/clock.ts";
import {
  computeRates,
  GOVERNOR_MODES,
  type MailHistory,
  NO_MAIL,
  REPUTATION_FLOORS,
  REPUTATION_LEVELS,
  REPUTATION_WINDOW_MS,
  type Reputation,
  type ReputationRules,
  release,
} from "../../domain/tenants/reputation.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { OPERATOR_NOT_FOUND } from "../../http/failures.ts";
import { tenantIdParameter } from "../../http/parameters.ts";
import { enumSchema, Timestamp } from "../../http/schemas.ts";
import { requireResult } from "../../http/store-results.ts";
import type { TenantRegistry } from "../registry.ts";

export interface ReputationPorts {
  readonly registry: Pick<TenantRegistry, "reputation" | "changeReputation">;
  readonly mailHistory: MailHistory;
  readonly reputationRules: ReputationRules;
  readonly clock: Clock;
}

const nullable = <T extends typeof Timestamp | ReturnType<typeof Type.Number>>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description });
const Share = Type.Number({ minimum: 0, maximum: 1 });
const Count = Type.Integer({ minimum: 0 });

function rateSchema(description: string) {
  const thresholds = Type.Object({ warned: Share, slowed: Share, held: Share }, { description: "A rate above it." });
  return Type.Object({ rate: nullable(Share, "Null: there is no mail."), floor: Count, thresholds }, { description });
}

const TenantReputation = Type.Object(
  {
    level: enumSchema(
      REPUTATION_LEVELS,
      "`warned` has no effect; `slowed`: a slower pace; `held`: new sends are refused, too.",
    ),
    since: nullable(Timestamp, "When the level began."),
    governor: enumSchema(GOVERNOR_MODES, "The mode in force for the tenant."),
    own_governor: Type.Union([enumSchema(GOVERNOR_MODES), Type.Null()], {
      description: "Null: `REPUTATION_GOVERNOR`.",
    }),
    counted_from: Type.String({
      format: "date-time",
      description: "The beginning of the hour 24 hours ago, or the release if that was later.",
    }),
    released_at: nullable(Timestamp, "The last release, for 24 hours."),
    sent: Count,
    bounced: Count,
    complained: Count,
    bounces: rateSchema("Bounces, of the e-mails that were sent or bounced. Judged from `floor` such e-mails on."),
    complaints: rateSchema("Complaints, of the e-mails that were sent. Judged from `floor` such e-mails on."),
  },
  { $id: "TenantReputation" },
);

const EXAMPLE: Static<typeof TenantReputation> = {
  level: "slowed",
  since: "2026-11-21T07:30:00.000Z",
  governor: "on",
  own_governor: null,
  counted_from: "2026-11-20T09:00:00.000Z",
  released_at: null,
  sent: 920,
  bounced: 80,
  complained: 0,
  bounces: { rate: 0.08, floor: 200, thresholds: { warned: 0.04, slowed: 0.06, held: 0.1 } },
  complaints: { rate: 0, floor: 1000, thresholds: { warned: 0.001, slowed: 0.002, held: 0.005 } },
};

const governorBody = Type.Object(
  {
    governor: Type.Union([...GOVERNOR_MODES.map((mode) => Type.Literal(mode)), Type.Null()], {
      description: `one of ${GOVERNOR_MODES.join(", ")}, or null for REPUTATION_GOVERNOR`,
    }),
  },
  { additionalProperties: false, examples: [{ governor: "off" }] },
);

const PATH = "/dash/api/tenants/:id/reputation";
const COMMON = {
  name: "operator",
  tag: "Tenants",
  params: { id: tenantIdParameter },
  answers: { 200: { description: "As it is now.", schema: TenantReputation, examples: [EXAMPLE] } },
  fails: { 404: OPERATOR_NOT_FOUND },
} as const;

/** `/dash/api/tenants/{id}/reputation`: how the governor judges a tenant's e-mail. */
export function reputationEndpoints(ports: ReputationPorts): readonly Endpoint[] {
  const { registry, clock } = ports;
  return [
    operatorEndpoint({
      ...COMMON,
      method: "GET",
      path: PATH,
      operation: "getReputation",
      summary: "A tenant's bounce and complaint rates, and what follows from them",
      handle: async ({ params: { id } }) =>
        reply(200, await show(ports, id, requireResult(await registry.reputation(id)))),
    }),
    operatorEndpoint({
      ...COMMON,
      method: "PUT",
      path: PATH,
      operation: "putReputationGovernor",
      summary: "Choose how a tenant is governed",
      description: "In force within two minutes: a level that the new mode does not allow ends then.",
      body: governorBody,
      audit: { body: ["governor"] },
      async handle({ params: { id }, body: { governor: mode } }) {
        const changed = await registry.changeReputation(id, (state) =>
          state.mode === mode ? state : { ...state, mode },
        );
        return reply(200, await show(ports, id, requireResult(changed).state));
      },
    }),
    operatorEndpoint({
      ...COMMON,
      method: "POST",
      path: `${PATH}/release`,
      operation: "releaseReputation",
      summary: "Release a tenant's e-mail from the governor",
      description:
        "Its pace and its sends are as before from the answer on, elsewhere within a second. What happened until now no longer counts; " +
        "what happens from now on does. A hold by an operator stays.",
      async handle({ params: { id } }) {
        const nowMs = clock.nowMs();
        const changed = await registry.changeReputation(id, (state) => release(state, nowMs));
        return reply(200, await show(ports, id, requireResult(changed).state));
      },
    }),
  ];
}

async function show(
  { mailHistory, reputationRules: rules, clock }: ReputationPorts,
  tenantId: string,
  { level, sinceMs, mode, releasedAtMs }: Reputation,
): Promise<Static<typeof TenantReputation>> {
  const fromMs = clock.nowMs() - REPUTATION_WINDOW_MS;
  const releases = new Map(releasedAtMs === null ? [] : [[tenantId, releasedAtMs]]);
  const counts = (await mailHistory.mailCounts({ fromMs, releases, tenantId })).get(tenantId) ?? NO_MAIL;
  const rates = computeRates(counts);
  const hourMs = 3_600_000;
  return {
    level,
    since: toTime(sinceMs),
    governor: mode ?? rules.mode,
    own_governor: mode,
    counted_from: new Date(Math.max(Math.floor(fromMs / hourMs) * hourMs, releasedAtMs ?? 0)).toISOString(),
    released_at: toTime(releasedAtMs),
    ...counts,
    bounces: { rate: rates.bounces, floor: REPUTATION_FLOORS.bounces, thresholds: { ...rules.bounces } },
    complaints: { rate: rates.complaints, floor: REPUTATION_FLOORS.complaints, thresholds: { ...rules.complaints } },
  };
}

function toTime(unixMs: number | null): string | null {
  return unixMs === null ? null : new Date(unixMs).toISOString();
}
