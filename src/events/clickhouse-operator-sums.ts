import { assert } from "../domain/errors.ts";
import { jobIdAt } from "../domain/ids.ts";
import { eventTimeMs, firstEventIdAt } from "../domain/jobs/event.ts";
import { FAILURE_CLASSES, type FailureClass } from "../domain/jobs/failure-class.ts";
import type { FailureGroup, OperatorSums, Span, SpanEvents, TimeRange } from "../domain/jobs/operator-sums.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { readResult, readType } from "./clickhouse-event-reader.ts";
import { eventLimits } from "./limits.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

const TABLES: Readonly<Record<Span, { readonly table: string; readonly column: string; readonly edge: string }>> = {
  minute: { table: "events_by_minute", column: "minute", edge: "toDateTime" },
  hour: { table: "events_hourly", column: "hour", edge: "toDateTime" },
  day: { table: "events_daily", column: "day", edge: "toDate" },
};

/**
 * Sums of all tenants. Failures are read from the table of rare events, whose key begins with tenant and type; rates from
 * the sums, so their cost does not grow with the volume.
 */
export class ClickHouseOperatorSums implements OperatorSums {
  private readonly settings: string;

  constructor(
    private readonly clickhouse: ClickHouse,
    private readonly target: EventStoreTarget,
  ) {
    this.settings = `${selectSettings(target, eventLimits.eventStoreReadTimeoutMs)}, max_memory_usage = ${eventLimits.metricBytesMax}`;
  }

  async failures({ fromMs, beforeMs }: TimeRange, limit: number): Promise<readonly FailureGroup[]> {
    // A job cannot fail before it is accepted, so no event before the range is of its jobs.
    const rows = await this.clickhouse.rows(
      `SELECT toString(tenant_id), toString(channel), toString(event_type) AS type, toString(failure_class) AS class,
  uniqExact(job_id) AS jobs, argMax(result, event_id), max(event_id)
FROM ${this.target.database}.events_by_type
WHERE event_type IN ('failed', 'bounced') AND event_id >= {first:UInt64} AND failure_class != ''
  AND toUInt128(job_id) >= toUInt128({from:UUID}) AND toUInt128(job_id) < toUInt128({before:UUID})
  AND NOT JSONHas(result, 'recipient')
GROUP BY tenant_id, channel, type, class
ORDER BY jobs DESC, tenant_id, class
LIMIT {limit:UInt32}
SETTINGS ${this.settings}`,
      { first: Math.max(1, firstEventIdAt(fromMs)), from: jobIdAt(fromMs), before: jobIdAt(beforeMs), limit },
    );
    const tenants = [...new Set(rows.map(([tenant]) => String(tenant)))];
    const sent = await this.sent(tenants, { fromMs, beforeMs });
    return rows.map(([tenant, channel, type, failureClass, jobs, result, last]) => {
      const { error, diagnostic } = readResult(result) ?? {};
      const example = error ?? diagnostic;
      return {
        tenantId: String(tenant),
        channel: String(channel),
        type: type === "bounced" ? "bounced" : "failed",
        failureClass: readClass(failureClass),
        jobs: Number(jobs),
        sent: sent.get(`${String(tenant)} ${String(channel)}`) ?? 0,
        example: typeof example === "string" ? example : null,
        lastAtMs: eventTimeMs(Number(last)),
      };
    });
  }

  /** By tenant and channel. */
  private async sent(
    tenants: readonly string[],
    { fromMs, beforeMs }: TimeRange,
  ): Promise<ReadonlyMap<string, number>> {
    if (tenants.length === 0) return new Map();
    assert(
      tenants.every((tenant) => TENANT_ID.test(tenant)),
      "names become part of a statement",
    );
    const rows = await this.clickhouse.rows(
      `SELECT toString(tenant_id), toString(channel), sum(events)
FROM ${this.target.database}.events_hourly
WHERE tenant_id IN (${tenants.map((tenant) => `'${tenant}'`).join(", ")}) AND event_type = 'sent'
  AND hour >= toStartOfHour(toDateTime({from:UInt32}, 'UTC')) AND hour < toDateTime({before:UInt32}, 'UTC')
GROUP BY tenant_id, channel
SETTINGS ${this.settings}`,
      { from: toSeconds(fromMs), before: toSeconds(beforeMs) },
    );
    return new Map(rows.map(([tenant, channel, events]) => [`${String(tenant)} ${String(channel)}`, Number(events)]));
  }

  async spans({ fromMs, beforeMs }: TimeRange, span: Span): Promise<readonly SpanEvents[]> {
    const { table, column, edge } = TABLES[span];
    const bound = (name: string) => `${edge}(toDateTime({${name}:UInt32}, 'UTC'), 'UTC')`;
    const rows = await this.clickhouse.rows(
      `SELECT toUnixTimestamp(toDateTime(${column}, 'UTC')) AS at, toString(channel) AS channel, toString(event_type) AS type, sum(events)
FROM ${this.target.database}.${table}
WHERE ${column} >= ${bound("from")} AND ${column} <= ${bound("last")}
GROUP BY at, channel, type
SETTINGS ${this.settings}`,
      { from: toSeconds(fromMs), last: toSeconds(beforeMs - 1) },
    );
    return rows.map(([at, channel, type, events]) => ({
      atMs: Number(at) * 1_000,
      channel: String(channel),
      type: readType(type),
      events: Number(events),
    }));
  }
}

function toSeconds(unixMs: number): number {
  return Math.max(0, Math.floor(unixMs / 1_000));
}

/** A later release may have stored a class that this one does not know. */
function readClass(value: unknown): FailureClass {
  return FAILURE_CLASSES.find((known) => known === value) ?? "other";
}
