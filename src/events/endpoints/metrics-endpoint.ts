import { type TSchema, Type } from "@sinclair/typebox";
import {
  COUNTS,
  type Count,
  type EventMetrics,
  METRIC_GROUPS,
  METRIC_INTERVALS,
  type MetricRow,
  type MetricsQuery,
} from "../../domain/jobs/event-metrics.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, reply, tenantEndpoint } from "../../http/endpoint.ts";
import { type QueryParameter, queryChoice } from "../../http/parameters.ts";
import { DAY_MS, dayParameter, requireOrder } from "../day-range.ts";
import { eventLimits } from "../limits.ts";
import { timeText } from "./operator-job-endpoints.ts";

/** A share of one type's events in another's; null where there are none of the second. */
const RATES = {
  delivery_rate: ["delivered", "sent"],
  open_rate: ["opened", "delivered"],
  click_rate: ["clicked", "delivered"],
  read_rate: ["read", "delivered"],
  bounce_rate: ["bounced", "sent"],
  complaint_rate: ["complained", "delivered"],
} as const satisfies Readonly<Record<string, readonly [Count, Count]>>;

type Rate = keyof typeof RATES;
const RATE_NAMES = ["delivery_rate", "open_rate", "click_rate", "read_rate", "bounce_rate", "complaint_rate"] as const;
const METRICS: readonly (Count | Rate)[] = [...COUNTS, ...RATE_NAMES];
type Metric = (typeof METRICS)[number];

const RETRY_SECONDS = 5;

/** `GET /v1/metrics`: a tenant's event counts and rates, by time and group. */
export function metricsEndpoint(
  { eventMetrics }: { readonly eventMetrics: EventMetrics },
  channels: readonly ChannelName[],
): Endpoint {
  const reading = new Set<string>();
  return tenantEndpoint({
    method: "GET",
    path: "/v1/metrics",
    name: "tenant_metrics",
    operation: "getMetrics",
    tag: "Events",
    summary: "Sums of the tenant's events, and rates",
    description: `By the day an event was recorded, so a rate of yesterday can still rise. Events about copies count: a mail to three has one \`sent\` and up to three \`delivered\`. \`opened\` and \`clicked\` are people's; machines' are \`machine_opened\` and \`machine_clicked\`. By time and channel at any volume and for ${eventLimits.metricDaysMax} days (by the hour ${eventLimits.metricFineDaysMax}); by domain, template and tag, and in zones that are half an hour off, for ${eventLimits.metricFineDaysMax} days with at most ${eventLimits.metricEventsMax.toLocaleString("en")} events.`,
    query: declareQuery(channels),
    answers: {
      200: {
        description: "A row for each interval and group with events.",
        schema: answerSchema(),
        examples: [EXAMPLE],
      },
    },
    async handle({ tenant: { tenantId }, query }) {
      const { metrics, interval, group_by: group, channel, timezone, from, to } = query;
      requireOrder({ fromMs: from, toMs: to });
      const [first, last] = [formatDate(from), formatDate(to)];
      const isWholeHours = hasWholeHours(timezone, from, to);
      const asked: MetricsQuery = { tenantId, from: first, to: last, timezone, isWholeHours, interval, group, channel };
      const isRead = !eventMetrics.isFromSums(asked);
      requireDays(to - from, isRead || interval === "hour");
      const rows = isRead
        ? await aside(reading, tenantId, () => found(eventMetrics, asked))
        : await found(eventMetrics, asked);
      const shown = rows.map((row) => shownRow(row, metrics));
      return reply(200, { from: first, to: last, timezone, interval, group_by: group, rows: shown });
    },
  });
}

async function found(eventMetrics: EventMetrics, asked: MetricsQuery): Promise<readonly MetricRow[]> {
  const rows = await eventMetrics.metrics(asked);
  if (rows === "too_many_events") {
    const max = eventLimits.metricEventsMax.toLocaleString("en");
    throw new ApiError(
      400,
      `there are more than ${max} events from from to to, too many for this group_by or timezone: ask for fewer days`,
    );
  }
  if (rows === "too_many_rows") {
    throw new ApiError(
      400,
      `the answer has more than ${eventLimits.metricRowsMax} rows: ask for fewer days or a longer interval`,
    );
  }
  return rows;
}

/** Reading events takes seconds of the event store's time, which no tenant may take for itself. */
async function aside<T>(reading: Set<string>, tenantId: string, read: () => Promise<T>): Promise<T> {
  if (reading.has(tenantId) || reading.size >= eventLimits.metricReadsMax) {
    throw new ApiError(429, "other metrics that take long are being computed: try again shortly", {}, RETRY_SECONDS);
  }
  reading.add(tenantId);
  try {
    return await read();
  } finally {
    reading.delete(tenantId);
  }
}

function requireDays(spanMs: number, isFine: boolean): void {
  const days = isFine ? eventLimits.metricFineDaysMax : eventLimits.metricDaysMax;
  if (spanMs < days * DAY_MS) return;
  const why = isFine ? " with this interval, group_by or timezone" : "";
  throw new ApiError(400, `from and to may be at most ${days} days${why}`);
}

const metricsParameter: QueryParameter<readonly Metric[]> = {
  description: `The metrics to show, separated by commas: ${METRICS.join(", ")}. Without it: all.`,
  schema: Type.String(),
  example: "sent,delivered,delivery_rate",
  read(text) {
    if (text === undefined) return METRICS;
    return text.split(",").map((word) => {
      const known = METRICS.find((metric) => metric === word);
      if (known === undefined) throw new ApiError(400, `metrics must be some of ${METRICS.join(", ")}`);
      return known;
    });
  },
};

const timezoneParameter: QueryParameter<string> = {
  description: "IANA name of the zone whose days count.",
  schema: Type.String({ default: "UTC" }),
  example: "Europe/Berlin",
  read(text) {
    if (text === undefined) return "UTC";
    // An offset such as +02:00 is a zone to `Intl`, and has no name.
    const zone = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(text) ? resolveZone(text) : null;
    if (zone === null) throw new ApiError(400, "timezone must be the IANA name of a zone, such as Europe/Berlin");
    return zone;
  },
};

function resolveZone(timeZone: string): string | null {
  try {
    return new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone;
  } catch {
    return null;
  }
}

/** Summer time may begin in the range; hardly a zone changes by less than an hour, and none twice within these days. */
function hasWholeHours(timeZone: string, fromMs: number, toMs: number): boolean {
  const format = new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" });
  const offsetAt = (ms: number) => format.formatToParts(ms).find(({ type }) => type === "timeZoneName")?.value ?? "";
  for (let ms = fromMs; ms < toMs + DAY_MS; ms += 30 * DAY_MS) if (HALF_HOUR.test(offsetAt(ms))) return false;
  return !HALF_HOUR.test(offsetAt(toMs + DAY_MS));
}

/** `GMT+05:30`, but not `GMT+01:00`. */
const HALF_HOUR = /:(?!00)\d\d/;

const declareQuery = (channels: readonly ChannelName[]) => ({
  metrics: metricsParameter,
  from: dayParameter("from", "First day, inclusive.", "2026-11-01"),
  to: dayParameter("to", "Last day, inclusive.", "2026-11-21"),
  interval: queryChoice("interval", METRIC_INTERVALS, { description: "Without it: all days together.", absent: null }),
  group_by: queryChoice("group_by", METRIC_GROUPS, {
    description: "Without it: all messages together. A message counts for each of its tags.",
    absent: null,
  }),
  channel: queryChoice("channel", channels, { description: "Only this channel.", absent: null }),
  timezone: timezoneParameter,
});

function answerSchema() {
  const count = Type.Optional(Type.Integer({ minimum: 0 }));
  const rate = (name: Rate) =>
    Type.Optional(
      Type.Union([Type.Number(), Type.Null()], { description: `${RATES[name].join(" / ")}; null: there were none.` }),
    );
  const members: Record<string, TSchema> = {
    at: Type.Optional(Type.String({ format: "date-time", description: "When the interval begins, in UTC." })),
    group: Type.Optional(Type.String({ description: "Empty: it has none, or is not known." })),
  };
  for (const name of COUNTS) members[name] = count;
  for (const name of RATE_NAMES) members[name] = rate(name);
  const nullable = (words: readonly string[]) => Type.Union([...words.map((word) => Type.Literal(word)), Type.Null()]);
  return Type.Object(
    {
      from: Type.String({ format: "date" }),
      to: Type.String({ format: "date" }),
      timezone: Type.String(),
      interval: nullable(METRIC_INTERVALS),
      group_by: nullable(METRIC_GROUPS),
      rows: Type.Array(Type.Object(members, { $id: "MetricsRow" })),
    },
    { $id: "Metrics" },
  );
}

const EXAMPLE = {
  from: "2026-11-20",
  to: "2026-11-21",
  timezone: "UTC",
  interval: "day",
  group_by: null,
  rows: [
    { at: "2026-11-20T00:00:00Z", sent: 1_200, delivered: 1_188, delivery_rate: 0.99 },
    { at: "2026-11-21T00:00:00Z", sent: 0, delivered: 2, delivery_rate: null },
  ],
} as const;

function shownRow({ atMs, group, events }: MetricRow, metrics: readonly Metric[]) {
  return {
    ...(atMs !== null && { at: timeText(atMs) }),
    ...(group !== null && { group }),
    ...Object.fromEntries(
      metrics.map((metric) => [metric, isRate(metric) ? computeRate(events, metric) : events[metric]]),
    ),
  };
}

function isRate(metric: Metric): metric is Rate {
  return metric in RATES;
}

/** In ten-thousandths. */
function computeRate(events: MetricRow["events"], rate: Rate): number | null {
  const [part, of] = RATES[rate];
  return events[of] === 0 ? null : Math.round((events[part] / events[of]) * 10_000) / 10_000;
}

function formatDate(dayMs: number): string {
  return new Date(dayMs).toISOString().slice(0, 10);
}
