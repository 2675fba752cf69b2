import type { Clock } from "../domain/clock.ts";
import { assert } from "../domain/errors.ts";
import { isJobId } from "../domain/ids.ts";
import {
  type DeliveryEvent,
  EVENT_IDS_PER_MS,
  EVENT_TYPES,
  type EventType,
  firstEventIdAt,
  withoutTime,
} from "../domain/jobs/event.ts";
import type {
  EventPage,
  EventQuery,
  EventRates,
  EventReader,
  EventSums,
  MinuteEvents,
  MonthlyEvents,
  MonthsQuery,
  TenantEvent,
} from "../domain/jobs/event-store.ts";
import {
  type Attempt,
  type ChannelName,
  type FinalStatus,
  isFinal,
  JOB_STATUSES,
  type JobRecord,
} from "../domain/jobs/job.ts";
import { remember } from "../domain/remember.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import { isJsonObject, type JsonObject } from "../domain/texts/json.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { eventLimits } from "./limits.ts";
import { SPARSE_TYPES } from "./schema/rollups.ts";
import type { EventStoreTarget } from "./schema/table.ts";
import { selectSettings } from "./statement-settings.ts";

/** How far this process's clock may lag behind the clock that makes event ids. */
const CLOCK_SKEW_MS = 600_000;

/**
 * Reads pages and jobs. Each query reads a range of a primary key in key order, so its cost depends neither on how deep the
 * page lies nor on how much data there is. Values are bound, never part of the text.
 */
export class ClickHouseEventReader implements EventReader, EventSums, EventRates {
  private readonly settings: string;
  private readonly spans = new PageSpans();

  constructor(
    private readonly clickhouse: ClickHouse,
    private readonly target: EventStoreTarget,
    private readonly clock: Clock,
  ) {
    this.settings = selectSettings(target, eventLimits.eventStoreReadTimeoutMs);
  }

  /** Rejects with `UnavailableError`. */
  async page(query: EventQuery): Promise<EventPage> {
    const { tenantId, limit } = query;
    assert(TENANT_ID.test(tenantId), "a page belongs to a tenant");
    assert(Number.isInteger(limit) && limit >= 1 && limit <= eventLimits.eventPageMax, "a page has a size");
    const from = eventIdBound(query.fromEventId);
    const to = eventIdBound(query.toEventId);
    if (from >= to) return { events: [], hasMore: false };
    // No event is above this bound, so no span is wasted on days that have not begun.
    const top = Math.min(to, firstEventIdAt(this.clock.nowMs() + CLOCK_SKEW_MS));
    const events: TenantEvent[] = [];
    let [span, high] = [this.spans.of(query), to];
    for (let step = 0; high > from && events.length <= limit; step += 1) {
      const low = step < NEAR_STEPS ? Math.max(from, Math.floor(top - span)) : from;
      const wanted = limit + 1 - events.length;
      const rows = await this.range(query, { from: low, to: high, rows: wanted });
      events.push(...distinct(rows.map(readTenantEvent)));
      span *= widening(events.length, limit + 1);
      // If copies displaced older events, those are still to be read.
      high = rows.length < wanted ? low : (events.at(-1)?.eventId ?? low);
    }
    const last = events[limit];
    // A range that was too short for a page shows how long it should have been.
    const reached = last === undefined ? (top - from) * ((limit + 1) / Math.max(1, events.length)) : top - last.eventId;
    this.spans.learn(query, reached);
    return { events: events.slice(0, limit), hasMore: last !== undefined };
  }

  /** Newest first, up to the limit; an event that is stored twice counts twice. */
  private range(
    { tenantId, channel, type }: EventQuery,
    { from, to, rows }: { readonly from: number; readonly to: number; readonly rows: number },
  ): Promise<readonly (readonly unknown[])[]> {
    const { table, order } = orderFor(type);
    return this.clickhouse.rows(
      `SELECT event_id, event_type, result, job_id, channel
FROM ${this.target.database}.${table}
WHERE tenant_id = {tenant:String} AND event_id >= {from:UInt64} AND event_id < {to:UInt64}
  AND ${channel === null ? "channel IN ('email', 'whatsapp')" : "channel = {channel:String}"}
  ${type === null ? "" : "AND event_type = {type:String}"}
ORDER BY ${order}
LIMIT {rows:UInt32}
SETTINGS ${this.settings}`,
      {
        tenant: tenantId,
        from,
        to,
        rows,
        ...(channel === null ? {} : { channel }),
        ...(type === null ? {} : { type }),
      },
    );
  }

  /** Rejects with `UnavailableError`. */
  async job(tenantId: string, jobId: string): Promise<JobRecord | null> {
    if (!TENANT_ID.test(tenantId) || !isJobId(jobId)) return null;
    const { database } = this.target;
    const which = "tenant_id = {tenant:String} AND job_id = {job:UUID}";
    const params = { tenant: tenantId, job: jobId };
    const [found] = await this.clickhouse.rows(
      `SELECT channel, status, attempts, result, attempts_log, began
FROM ${database}.jobs
WHERE ${which}
ORDER BY version DESC
LIMIT 1
SETTINGS ${this.settings}`,
      params,
    );
    if (found === undefined) return null;
    // The time in the job's id is no lower bound: the clock of the machine that made it may be years off from the one that made
    // the events' ids. The filter on job ids finds the few matching places without it.
    const events = await this.clickhouse.rows(
      `SELECT event_id, event_type, result
FROM ${database}.events
WHERE ${which}
ORDER BY tenant_id, event_id
LIMIT ${eventLimits.jobEventsMax}
SETTINGS ${this.settings}`,
      params,
    );
    return readJob({ tenantId, jobId }, found, distinct(events.map(readEvent)));
  }

  /** Rejects with `UnavailableError`. */
  async months({ tenantIds, from, to }: MonthsQuery): Promise<readonly MonthlyEvents[]> {
    assert(
      tenantIds.every((tenantId) => TENANT_ID.test(tenantId)),
      "sums belong to tenants",
    );
    if (tenantIds.length === 0) return [];
    const sorted = tenantIds.toSorted();
    // The range finds the key's part; a tenant's id holds no comma.
    const rows = await this.clickhouse.rows(
      `SELECT tenant_id, toYYYYMM(day) AS month, channel, event_type, sum(events)
FROM ${this.target.database}.events_daily
WHERE tenant_id >= {first:String} AND tenant_id <= {last:String}
  AND has(splitByChar(',', {tenants:String}), toString(tenant_id))
  AND day >= toDate({from:String}) AND day < toDate({to:String}) + INTERVAL 1 MONTH
GROUP BY tenant_id, month, channel, event_type
SETTINGS ${this.settings}`,
      {
        first: sorted[0] ?? "",
        last: sorted.at(-1) ?? "",
        tenants: sorted.join(","),
        from: `${from}-01`,
        to: `${to}-01`,
      },
    );
    return rows.map(readMonth);
  }

  /** Rejects with `UnavailableError`. */
  async minutes(fromMs: number): Promise<readonly MinuteEvents[]> {
    const rows = await this.clickhouse.rows(
      `SELECT toUnixTimestamp(minute), channel, event_type, sum(events)
FROM ${this.target.database}.events_by_minute
WHERE minute >= toDateTime({from:UInt32}, 'UTC')
GROUP BY minute, channel, event_type
SETTINGS ${this.settings}`,
      { from: Math.ceil(fromMs / 1_000) },
    );
    return rows.map(([second, channel, type, events]) => ({
      minuteMs: readInteger(second) * 1_000,
      channel: readChannel(channel),
      type: readType(type),
      events: readInteger(events),
    }));
  }

  /** Rejects with `UnavailableError`. */
  async sumsSince(fromMs: number): Promise<ReadonlyMap<EventType, number>> {
    const rows = await this.clickhouse.rows(
      `SELECT event_type, sum(events)
FROM ${this.target.database}.events_by_minute
WHERE minute >= toDateTime({from:UInt32}, 'UTC')
GROUP BY event_type
SETTINGS ${this.settings}`,
      { from: Math.ceil(fromMs / 1_000) },
    );
    return new Map(rows.map(([type, events]) => [readType(type), readInteger(events)]));
  }
}

/** Slices to try before reading all the rest at once. */
const NEAR_STEPS = 2;

/** The factor by which to widen a span that held too few of the wanted rows. */
function widening(found: number, wanted: number): number {
  return found === 0 ? 8 : Math.max(2, (2 * wanted) / found);
}

/** The table whose key order makes a page of this type a contiguous range, and that order. */
function orderFor(type: EventType | null): { readonly table: string; readonly order: string } {
  return type !== null && SPARSE_TYPES.includes(type)
    ? { table: "events_by_type", order: "tenant_id DESC, event_type DESC, event_id DESC" }
    : { table: "events", order: "tenant_id DESC, event_id DESC" };
}

/** Distant dates map to numbers that are no event ids; the nearest event id is used instead. */
function eventIdBound(bound: number): number {
  assert(!Number.isNaN(bound), "a range of events has ends");
  return Math.ceil(Math.min(Math.max(0, bound), Number.MAX_SAFE_INTEGER));
}

/** Removes duplicates. If an event is ever stored twice, its copies are neighbours. */
export function distinct<E extends DeliveryEvent>(events: readonly E[]): readonly E[] {
  return events.filter(({ eventId }, at) => events[at - 1]?.eventId !== eventId);
}

/** From the columns `event_id, event_type, result, job_id, channel`. */
export function readTenantEvent(row: readonly unknown[]): TenantEvent {
  const [, , , jobId, channel] = row;
  assert(typeof jobId === "string", "a job id is text");
  return { ...readEvent(row), jobId, channel: readChannel(channel) };
}

function readMonth([tenantId, month, channel, type, events]: readonly unknown[]): MonthlyEvents {
  assert(typeof tenantId === "string", "a stored sum has a tenant");
  const digits = String(readInteger(month));
  return {
    tenantId,
    month: `${digits.slice(0, 4)}-${digits.slice(4)}`,
    channel: readChannel(channel),
    type: readType(type),
    events: readInteger(events),
  };
}

/** From the columns `channel, status, attempts, result, attempts_log, began`. */
export function readJob(
  job: { readonly tenantId: string; readonly jobId: string },
  [channel, status, attempts, result, log, began]: readonly unknown[],
  events: readonly DeliveryEvent[],
): JobRecord {
  const life = readInteger(began);
  const tries = readTries(log);
  return {
    ...job,
    channel: readChannel(channel),
    status: readStatus(status),
    attempts: readInteger(attempts),
    result: readResult(result),
    events,
    ...(tries.length > 0 && { tries }),
    ...(life > 0 && { began: life }),
  };
}

/** From the columns `event_id, event_type, result`. */
export function readEvent([eventId, type, result]: readonly unknown[]): DeliveryEvent {
  // A recorder of a former release stored the provider's time as a part of the result.
  return { eventId: readInteger(eventId), type: readType(type), result: withoutTime(readResult(result)).result };
}

export function readType(value: unknown): EventType {
  const known = EVENT_TYPES.find((word) => word === value);
  assert(known !== undefined, "a stored event has a type of ours");
  return known;
}

function readChannel(value: unknown): ChannelName {
  assert(typeof value === "string", "a stored row has a channel");
  return value;
}

export function readStatus(value: unknown): FinalStatus {
  const known = JOB_STATUSES.find((word) => word === value);
  assert(known !== undefined && isFinal(known), "a stored job has a final status");
  return known;
}

export function readInteger(value: unknown): number {
  assert(typeof value === "number" && Number.isSafeInteger(value), "a stored number is whole and exact");
  return value;
}

/** As the queue wrote them; none where they were damaged by hand. */
function readTries(value: unknown): readonly Attempt[] {
  try {
    const parsed: unknown = JSON.parse(String(value));
    return Array.isArray(parsed) ? (parsed as readonly Attempt[]) : [];
  } catch {
    return [];
  }
}

/** A result damaged by hand loses only its own content, not the page it is on. */
export function readResult(value: unknown): JsonObject {
  try {
    const parsed: unknown = typeof value === "string" ? JSON.parse(value) : null;
    return isJsonObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

/** Pages of one tenant with the same filter are alike. */
interface PageKind {
  readonly tenantId: string;
  readonly channel: ChannelName | null;
  readonly type: EventType | null;
}

/** The initial span for a kind of page that has not been read yet. */
const FIRST_SPAN = 24 * 60 * 60 * 1000 * EVENT_IDS_PER_MS;
const SHORTEST_SPAN = 60 * 60 * 1000 * EVENT_IDS_PER_MS;
const KINDS_MAX = 10_000;

/**
 * Remembers how far back a page reached, by kind of page. A page opens every part of the table that its range touches and pays
 * for each. Parts are slices of time, so a range hardly longer than the page touches few of them.
 *
 * These are only estimates: a reader that finds too few rows goes on with older ones.
 */
class PageSpans {
  /** Least recently used first. */
  private readonly spans = new Map<string, number>();

  /** How many event ids below the upper end most likely hold a page of this kind. */
  of(kind: PageKind): number {
    return this.spans.get(toKey(kind)) ?? FIRST_SPAN;
  }

  /** Records that a page reached, or would have reached, this far below its upper end. */
  learn(kind: PageKind, reached: number): void {
    remember(this.spans, { key: toKey(kind), value: Math.max(SHORTEST_SPAN, 2 * reached), max: KINDS_MAX });
  }
}

function toKey({ tenantId, channel, type }: PageKind): string {
  return `${tenantId} ${channel ?? ""} ${type ?? ""}`;
}
