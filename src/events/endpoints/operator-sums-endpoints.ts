import { Type } from "@sinclair/typebox";
import type { Clock } from "../../domain/clock.ts";
import { FAILURE_CLASSES } from "../../domain/jobs/failure-class.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { OperatorSums, Span, SpanEvents, TimeRange } from "../../domain/jobs/operator-sums.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import { enumSchema, listSchema, Timestamp } from "../../http/schemas.ts";
import { DAY_MS, momentParameter, requireMoments } from "../day-range.ts";

export interface OperatorSumsPorts {
  readonly operatorSums: OperatorSums;
  readonly clock: Clock;
}

const GROUPS_MAX = 200;
const RANGE_DAYS_MAX = 92;
const HOUR_MS = 60 * 60 * 1000;
const SPAN_MS = { minute: 60_000, hour: HOUR_MS, day: DAY_MS } as const satisfies Readonly<Record<Span, number>>;
/** A chart has a few hundred points; minutes are kept for three days. */
const MINUTES_RANGE_MS = 6 * HOUR_MS;
const MINUTES_KEPT_MS = 2 * DAY_MS;
const HOURS_RANGE_MS = 8 * DAY_MS;

const query = {
  from: momentParameter("from", "From this time on; by default, 24 hours ago.", "2026-11-01"),
  to: momentParameter("to", "Up to this time, or to the end of this day; by default, now.", "2026-11-21T07:30:00Z"),
};

/** Failures by cause and rates of all tenants, over a range of time. */
export function operatorSumsEndpoints(ports: OperatorSumsPorts, channels: readonly ChannelName[]): readonly Endpoint[] {
  return [listFailures(ports, channels), getRates(ports, channels)];
}

function listFailures({ operatorSums, clock }: OperatorSumsPorts, channels: readonly ChannelName[]): Endpoint {
  const Group = Type.Object(
    {
      tenant_id: Type.String(),
      channel: enumSchema(channels),
      type: enumSchema(["failed", "bounced"], "`bounced`: it was sent, and then it came back."),
      failure_class: enumSchema(FAILURE_CLASSES),
      jobs: Type.Integer({ description: "Each counts once; those that were sent again since count, too." }),
      sent: Type.Integer({ description: "What the tenant sent on the channel in the hours of the range." }),
      example: Type.Union([Type.String(), Type.Null()], {
        description: "The words of the latest one, without addresses and numbers of people.",
      }),
      last_at: Timestamp,
    },
    { $id: "FailureGroup" },
  );
  return operatorEndpoint({
    method: "GET",
    path: "/dash/api/failures",
    name: "operator",
    operation: "listFailures",
    tag: "Jobs",
    summary: "Failed and bounced jobs of all tenants, grouped by cause",
    description: `Of the jobs that were accepted in the range, which has at most ${RANGE_DAYS_MAX} days: the ${GROUPS_MAX} largest groups. \`GET /dash/api/tenants/{id}/jobs\` with the same range and \`failure_class\` has a group's jobs.`,
    query,
    answers: {
      200: {
        description: "The largest groups first.",
        schema: listSchema("FailureGroupList", "groups", Group),
        examples: [{ groups: [EXAMPLE_GROUP] }],
      },
    },
    async handle({ query: given }) {
      const groups = await operatorSums.failures(parseRange(given, clock.nowMs()), GROUPS_MAX);
      return reply(200, {
        groups: groups.map(({ tenantId, failureClass, lastAtMs, example, ...group }) => ({
          tenant_id: tenantId,
          failure_class: failureClass,
          last_at: new Date(lastAtMs).toISOString(),
          example: example === null ? null : withoutPeople(example),
          ...group,
        })),
      });
    },
  });
}

const EXAMPLE_GROUP = {
  tenant_id: "acme",
  channel: "email",
  type: "failed",
  failure_class: "recipient",
  jobs: 112,
  sent: 4_021,
  example: "the mail server refused the message: 550 5.1.1 no such user",
  last_at: "2026-11-21T07:30:00.000Z",
} as const;

/** Servers quote the recipient, whom a list does not show either. */
export function withoutPeople(text: string): string {
  return text.replace(/[^\s<>"'(),;:]+@/g, "…@").replace(/\+?\d[\d -]{6,}\d/g, "…");
}

const SERIES = ["sent", "delivered", "bounced", "failed", "suppressed"] as const;

function getRates({ operatorSums, clock }: OperatorSumsPorts, channels: readonly ChannelName[]): Endpoint {
  const Counts = Type.Array(Type.Integer({ minimum: 0 }));
  const Rates = Type.Object(
    {
      from: Timestamp,
      interval_seconds: Type.Integer(),
      series: Type.Array(Type.Object({ channel: enumSchema(channels), outcome: enumSchema(SERIES), counts: Counts })),
    },
    { $id: "Rates" },
  );
  return operatorEndpoint({
    method: "GET",
    path: "/dash/api/rates",
    name: "operator",
    operation: "getRates",
    tag: "Operators",
    summary: "How much went through with all tenants",
    description: `By the minute for up to six hours of the last two days, by the hour for up to eight days, else by the UTC day, for at most ${RANGE_DAYS_MAX} days. The first interval begins at or before \`from\`; the last one may still be running.`,
    query,
    answers: { 200: { description: "Sums, oldest first.", schema: Rates, examples: [EXAMPLE_RATES] } },
    async handle({ query: given }) {
      const nowMs = clock.nowMs();
      const range = parseRange(given, nowMs);
      const span = chooseSpan(range, nowMs);
      const stepMs = SPAN_MS[span];
      const fromMs = Math.floor(range.fromMs / stepMs) * stepMs;
      const found = await operatorSums.spans({ ...range, fromMs }, span);
      const steps = Math.ceil((range.beforeMs - fromMs) / stepMs);
      const series = channels.flatMap((channel) =>
        SERIES.map((outcome) => {
          const own = found.filter((one) => one.channel === channel && one.type === outcome);
          return { channel, outcome, counts: countSteps(own, { fromMs, stepMs, steps }) };
        }),
      );
      return reply(200, { from: new Date(fromMs).toISOString(), interval_seconds: stepMs / 1_000, series });
    },
  });
}

const EXAMPLE_RATES = {
  from: "2026-11-21T00:00:00.000Z",
  interval_seconds: 3_600,
  series: [{ channel: "email", outcome: "sent", counts: [120, 98] }],
} as const;

function countSteps(
  events: readonly SpanEvents[],
  { fromMs, stepMs, steps }: { readonly fromMs: number; readonly stepMs: number; readonly steps: number },
): number[] {
  const counts = Array.from({ length: steps }, () => 0);
  for (const { atMs, events: more } of events) {
    const at = (atMs - fromMs) / stepMs;
    if (counts[at] !== undefined) counts[at] += more;
  }
  return counts;
}

function chooseSpan({ fromMs, beforeMs }: TimeRange, nowMs: number): Span {
  const ms = beforeMs - fromMs;
  if (ms <= MINUTES_RANGE_MS && nowMs - fromMs <= MINUTES_KEPT_MS) return "minute";
  return ms <= HOURS_RANGE_MS ? "hour" : "day";
}

/** Throws an `ApiError` 400 that names the parameter. */
function parseRange(
  { from, to }: { readonly from: number | null; readonly to: number | null },
  nowMs: number,
): TimeRange {
  const beforeMs = to ?? nowMs;
  const fromMs = from ?? beforeMs - DAY_MS;
  requireMoments(fromMs, beforeMs);
  if (beforeMs - fromMs > RANGE_DAYS_MAX * DAY_MS) {
    throw new ApiError(400, `to must be at most ${RANGE_DAYS_MAX} days after from`);
  }
  return { fromMs, beforeMs };
}
