import { assert } from "../domain/errors.ts";
import type { EventFeed, EventPosition, EventsAfter, TenantEvent } from "../domain/jobs/event-store.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { distinct, readInteger, readTenantEvent } from "./clickhouse-event-reader.ts";
import { eventLimits } from "./limits.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

/** Reads skip replicas that lag by two seconds (`statement-settings.ts`); the lag is measured in whole seconds. */
const CLUSTER_SETTLE_MS = 3_500;
const MARKS_PER_STATEMENT = 50;

/** Reads ranges of the primary key in key order, so a statement's cost depends only on the size of its result. */
export class ClickHouseEventFeed implements EventFeed {
  readonly settleMs: number;
  private readonly settings: string;

  constructor(
    private readonly clickhouse: ClickHouse,
    private readonly target: EventStoreTarget,
  ) {
    this.settleMs = target.cluster === null ? 0 : CLUSTER_SETTLE_MS;
    this.settings = selectSettings(target, eventLimits.eventStoreReadTimeoutMs);
  }

  async after(query: EventsAfter): Promise<readonly TenantEvent[]> {
    assert(TENANT_ID.test(query.tenantId), "events belong to a tenant");
    const events: TenantEvent[] = [];
    for (let { afterEventId } = query; afterEventId < query.throughEventId; ) {
      const limit = query.limit - events.length;
      const rows = await this.range({ ...query, afterEventId, limit });
      events.push(...distinct(rows.map(readTenantEvent)));
      const last = events.at(-1);
      if (last === undefined || rows.length < limit || events.length === query.limit) break;
      // Copies displaced later events. `LIMIT 1 BY` would read the whole range to leave them out.
      afterEventId = last.eventId;
    }
    return events;
  }

  /** Oldest first, up to the limit; an event that is stored twice counts twice. */
  private range(query: EventsAfter): Promise<readonly (readonly unknown[])[]> {
    const { tenantId, afterEventId, throughEventId, channels, types, limit } = query;
    const among = (column: string, name: string) => `AND has(splitByChar(',', {${name}:String}), toString(${column}))`;
    return this.clickhouse.rows(
      `SELECT event_id, event_type, result, job_id, channel
FROM ${this.target.database}.events
WHERE tenant_id = {tenant:String} AND event_id > {after:UInt64} AND event_id <= {through:UInt64}
  ${channels === null ? "" : among("channel", "channels")}
  ${types === null ? "" : among("event_type", "types")}
ORDER BY tenant_id, event_id
LIMIT {rows:UInt32}
SETTINGS ${this.settings}`,
      {
        tenant: tenantId,
        after: afterEventId,
        through: throughEventId,
        rows: limit,
        ...(channels !== null && { channels: channels.join(",") }),
        ...(types !== null && { types: types.join(",") }),
      },
    );
  }

  async marks(positions: readonly EventPosition[]): Promise<ReadonlyMap<string, number>> {
    const marks = new Map<string, number>();
    for (let at = 0; at < positions.length; at += MARKS_PER_STATEMENT) {
      for (const [tenantId, mark] of await this.findLast(positions.slice(at, at + MARKS_PER_STATEMENT))) {
        marks.set(String(tenantId), readInteger(mark));
      }
    }
    return marks;
  }

  /** Each part reads one row, however many are behind the position. */
  private findLast(positions: readonly EventPosition[]): Promise<readonly (readonly unknown[])[]> {
    const parts = positions.map(
      (_, at) => `SELECT toString(tenant_id) AS tenant, event_id AS last FROM (
  SELECT tenant_id, event_id FROM ${this.target.database}.events
  WHERE tenant_id = {t${at}:String} AND event_id > {a${at}:UInt64}
  ORDER BY tenant_id DESC, event_id DESC LIMIT 1
)`,
    );
    const params = positions.flatMap(({ tenantId, afterEventId }, at) => {
      assert(TENANT_ID.test(tenantId), "events belong to a tenant");
      return [
        [`t${at}`, tenantId],
        [`a${at}`, afterEventId],
      ] as const;
    });
    return this.clickhouse.rows(
      `SELECT tenant, last FROM (
${parts.join("\nUNION ALL\n")}
)
SETTINGS ${this.settings}`,
      Object.fromEntries<string | number>(params),
    );
  }
}
