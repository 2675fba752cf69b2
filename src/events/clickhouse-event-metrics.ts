import { assert } from "../domain/errors.ts";
import {
  COUNTS,
  type Count,
  type EventMetrics,
  type MetricGroup,
  type MetricInterval,
  type MetricRow,
  type MetricsQuery,
} from "../domain/jobs/event-metrics.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { eventLimits } from "./limits.ts";
import { isCounted } from "./schema/rollups.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

const EVENT_SECOND = "toDateTime(intDiv(event_id, 4096000) + 1735689600, 'UTC')";

/**
 * Sums a tenant's events for the tenant itself. By time and channel it reads the sums by hour, however many events there are.
 * Other groupings are stored with the jobs only, and zones with half-hour offsets need the events themselves, which are read
 * only if the sums show few enough of them.
 *
 * Values are checked to be plain and are part of the text, as in exports.
 */
export class ClickHouseEventMetrics implements EventMetrics {
  constructor(
    private readonly clickhouse: ClickHouse,
    private readonly target: EventStoreTarget,
  ) {}

  isFromSums({ isWholeHours, group }: MetricsQuery): boolean {
    return isWholeHours && (group === null || group === "channel");
  }

  async metrics(query: MetricsQuery): Promise<readonly MetricRow[] | "too_many_events" | "too_many_rows"> {
    assert(TENANT_ID.test(query.tenantId), "metrics belong to a tenant");
    assert(
      [query.from, query.to].every((day) => /^\d{4}-\d{2}-\d{2}$/.test(day)),
      "a day is a date",
    );
    assert(/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(query.timezone), "a zone has a plain name");
    assert(query.channel === null || /^[a-z][a-z0-9_]*$/.test(query.channel), "a channel has a plain name");
    if (!this.isFromSums(query) && (await this.count(query)) > eventLimits.metricEventsMax) return "too_many_events";
    const rows = await this.clickhouse.rows(this.isFromSums(query) ? this.ofSums(query) : this.ofEvents(query));
    return rows.length > eventLimits.metricRowsMax ? "too_many_rows" : rows.map((row) => readRow(row, query));
  }

  /** At least as many as there are; the ends of the range are whole hours. */
  private async count(query: MetricsQuery): Promise<number> {
    const { from, to } = formatEdges(query);
    const [row] = await this.clickhouse.rows(
      `SELECT sum(events) FROM ${this.target.database}.events_hourly
WHERE ${mine(query)} AND hour >= toStartOfHour(${from}) AND hour < ${to} SETTINGS ${this.settings()}`,
    );
    return Number(row?.[0] ?? 0);
  }

  private ofSums(query: MetricsQuery): string {
    const { from, to } = formatEdges(query);
    return this.summed(
      `SELECT ${formatStart(query, "hour")} AS at, ${query.group === "channel" ? "toString(channel)" : "''"} AS grouped, event_type, machine, events
FROM ${this.target.database}.events_hourly
WHERE ${mine(query)} AND hour >= ${from} AND hour < ${to}`,
    );
  }

  private ofEvents(query: MetricsQuery): string {
    const { database } = this.target;
    const { from, to } = formatEdges(query);
    const id = (edge: string) => `(toUnixTimestamp(${edge}) * 1000 - 1735689600000) * 4096`;
    const range = `${mine(query)} AND event_id >= ${id(from)} AND event_id < ${id(to)}`;
    const events = `SELECT job_id, event_type, machine, toString(channel) AS channel, ${formatStart(query, EVENT_SECOND)} AS at, toUInt64(1) AS events
FROM ${database}.events WHERE ${range}`;
    if (query.group === null || query.group === "channel") {
      return this.summed(
        `SELECT at, ${query.group === null ? "''" : "channel"} AS grouped, event_type, machine, events FROM (${events})`,
      );
    }
    const jobs = `SELECT job_id, ${JOB_COLUMN[query.group]} AS known FROM ${database}.jobs
WHERE tenant_id = '${query.tenantId}' AND job_id IN (SELECT job_id FROM ${database}.events WHERE ${range})`;
    const grouped = query.group === "tag" ? "arrayJoin(if(empty(j.known), [''], j.known))" : "toString(j.known)";
    return this.summed(
      `SELECT e.at AS at, ${grouped} AS grouped, e.event_type AS event_type, e.machine AS machine, e.events AS events
FROM (${events}) AS e ANY LEFT JOIN (${jobs}) AS j ON j.job_id = e.job_id`,
    );
  }

  private summed(from: string): string {
    const counts = COUNTS.map((count) => `sumIf(events, ${isCounted(count)})`).join(", ");
    return `SELECT at, grouped, ${counts} FROM (
${from}
) GROUP BY at, grouped ORDER BY at, grouped LIMIT ${eventLimits.metricRowsMax + 1}
SETTINGS ${this.settings()}, max_memory_usage = ${eventLimits.metricBytesMax}`;
  }

  private settings(): string {
    return selectSettings(this.target, eventLimits.eventStoreReadTimeoutMs);
  }
}

/** All events lie between these; the event store's times end in 2106. */
const FIRST_MS = Date.UTC(2024, 11, 30);
const LAST_MS = Date.UTC(2105, 0, 1);

const JOB_COLUMN: Readonly<Record<Exclude<MetricGroup, "channel">, string>> = {
  domain: "recipient_domain",
  template: "template",
  tag: "tags",
};

function mine({ tenantId, channel }: MetricsQuery): string {
  return `tenant_id = '${tenantId}'${channel === null ? "" : ` AND channel = '${channel}'`}`;
}

/** [from, to) as instants. */
function formatEdges({ from, to, timezone }: MetricsQuery): { readonly from: string; readonly to: string } {
  const midnight = (unixMs: number) => {
    const day = new Date(Math.min(Math.max(unixMs, FIRST_MS), LAST_MS)).toISOString().slice(0, 10);
    return `toDateTime('${day} 00:00:00', '${timezone}')`;
  };
  return { from: midnight(Date.parse(from)), to: midnight(Date.parse(to) + 86_400_000) };
}

/** The unix second at which the interval begins that contains the time; 0: there are no intervals. */
function formatStart({ interval, timezone }: MetricsQuery, time: string): string {
  if (interval === null) return "toUInt32(0)";
  const zone = `'${timezone}'`;
  const starts: Readonly<Record<MetricInterval, string>> = {
    hour: `toStartOfHour(${time}, ${zone})`,
    day: `toStartOfDay(${time}, ${zone})`,
    week: `toDateTime(toMonday(${time}, ${zone}), ${zone})`,
    month: `toDateTime(toStartOfMonth(${time}, ${zone}), ${zone})`,
  };
  return `toUnixTimestamp(${starts[interval]})`;
}

function readRow([at, grouped, ...counts]: readonly unknown[], { interval, group }: MetricsQuery): MetricRow {
  const events = Object.fromEntries(COUNTS.map((count, i) => [count, Number(counts[i] ?? 0)]));
  return {
    atMs: interval === null ? null : Number(at) * 1_000,
    group: group === null ? null : String(grouped),
    // The object has exactly the listed types.
    events: events as Record<Count, number>,
  };
}
