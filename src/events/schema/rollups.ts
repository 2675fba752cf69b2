import { EVENT_TYPES, type EventType } from "../../domain/jobs/event.ts";
import { COUNTS, type Count } from "../../domain/jobs/event-metrics.ts";
import { insertSettings } from "../statement-settings.ts";
import {
  CREATE_VIEW,
  type Creation,
  checked,
  type EventStoreTarget,
  eventTime,
  FIRST_CHANNELS,
  FORMER_TTL,
  formatEnum,
  localName,
  onCluster,
  type Table,
  table,
} from "./table.ts";

/**
 * Tables filled from `events` as it is written: a copy of the rare types in their own order, sums by hour and day, and views
 * for analysts. The sums match the events exactly, even when an insert is repeated: their tables remember the insert's token as
 * well.
 */
export function rollups(target: EventStoreTarget): readonly string[] {
  const { database, cluster } = checked(target);
  return [
    `ALTER TABLE ${database}.${localName(target, "jobs")}${onCluster(cluster)} ADD COLUMN IF NOT EXISTS template LowCardinality(String) DEFAULT '' CODEC(ZSTD(1))`,
    ...(cluster === null
      ? []
      : [
          `ALTER TABLE ${database}.jobs${onCluster(cluster)} ADD COLUMN IF NOT EXISTS template LowCardinality(String) DEFAULT ''`,
        ]),
    `ALTER TABLE ${database}.${localName(target, "events")}${onCluster(cluster)} MODIFY SETTING ${MERGED_WHEN_OVER.join(", ")}`,
    ...DERIVED.flatMap((derived) => derivedTable(target, derived)),
  ];
}

/**
 * A job's tries as JSON text, and its recipient as a keyed hash, which is how it is found, and its domain in clear. Rows from
 * before have none. The filter skips almost every granule without the hash, so a search costs about two bytes of index for each
 * job.
 */
export function jobRecipients(target: EventStoreTarget): readonly string[] {
  const { database, cluster } = checked(target);
  const columns = [
    "recipient_hash UUID CODEC(ZSTD(1))",
    "recipient_domain LowCardinality(String) DEFAULT '' CODEC(ZSTD(1))",
    "attempts_log String DEFAULT '[]' CODEC(ZSTD(3))",
  ];
  const tables = [...new Set([localName(target, "jobs"), "jobs"])];
  return [
    ...tables.flatMap((name) =>
      columns.map((column) => {
        const type = name === localName(target, "jobs") ? column : column.replace(/ CODEC.*$/, "");
        return `ALTER TABLE ${database}.${name}${onCluster(cluster)} ADD COLUMN IF NOT EXISTS ${type}`;
      }),
    ),
    `ALTER TABLE ${database}.${localName(target, "jobs")}${onCluster(cluster)} ADD INDEX IF NOT EXISTS recipient_bloom recipient_hash TYPE bloom_filter(0.01) GRANULARITY 1`,
  ];
}

/**
 * Sums of all tenants by minute, for the operators' overview. The minutes of the current day are filled in; events written
 * meanwhile may be missing from them.
 */
export function minuteSums(target: EventStoreTarget): readonly string[] {
  const { database, cluster } = checked(target);
  const { name } = EVENTS_BY_MINUTE;
  const today = "event_id >= (toUnixTimestamp(toStartOfDay(now('UTC'))) * 1000 - 1735689600000) * 4096";
  const isNew = `(SELECT count() FROM system.tables WHERE database = '${database}' AND name = '${name}_mv') = 0`;
  return [
    ...table(target, EVENTS_BY_MINUTE),
    `INSERT INTO ${database}.${name} ${selectMinutes(`${database}.events`, `${today} AND ${isNew}`)}
SETTINGS ${insertSettings(target, `fill-${name}`)}`,
    `CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.${name}_mv${onCluster(cluster)}
TO ${database}.${localName(target, name)} AS ${selectMinutes(`${database}.${localName(target, "events")}`, "1")}`,
  ];
}

/** A purge is an operator's act: it is no failure that operators watch for. */
export function minuteSumsOfFaults(target: EventStoreTarget): readonly string[] {
  const { database, cluster } = checked(target);
  return [
    `ALTER TABLE ${database}.${EVENTS_BY_MINUTE.name}_mv${onCluster(cluster)} MODIFY QUERY
${selectMinutes(`${database}.${localName(target, "events")}`, "failure_class != 'purged'")}`,
  ];
}

function selectMinutes(events: string, condition: string): string {
  return `SELECT toStartOfMinute(${EVENT_SECOND}) AS minute, channel, event_type, count() AS events
FROM ${events} WHERE ${condition} GROUP BY minute, channel, event_type`;
}

/** Where a job's present life began, if operators had it tried again. */
export function jobLives(target: EventStoreTarget): readonly string[] {
  const { database, cluster } = checked(target);
  const tables = [...new Set([localName(target, "jobs"), "jobs"])];
  return tables.map((name) => {
    const codec = name === localName(target, "jobs") ? " CODEC(ZSTD(1))" : "";
    return `ALTER TABLE ${database}.${name}${onCluster(cluster)} ADD COLUMN IF NOT EXISTS began UInt64 DEFAULT 0${codec}`;
  });
}

/** Why events failed, when they happened by the provider's clock, the tags of jobs, and a row for each try. */
export function failureColumns(target: EventStoreTarget): readonly string[] {
  const { database, cluster } = checked(target);
  const add = (name: string, columns: readonly string[]) =>
    [...new Set([localName(target, name), name])].flatMap((each) =>
      columns.map((column) => {
        const type = each === localName(target, name) ? `${column} CODEC(ZSTD(1))` : column;
        return `ALTER TABLE ${database}.${each}${onCluster(cluster)} ADD COLUMN IF NOT EXISTS ${type}`;
      }),
    );
  const ofEvents = ["failure_class LowCardinality(String) DEFAULT ''", "occurred_at Nullable(DateTime64(3, 'UTC'))"];
  return [
    ...add("events", ofEvents),
    ...add("events_by_type", ofEvents),
    `ALTER TABLE ${database}.events_by_type_mv${onCluster(cluster)} MODIFY QUERY
SELECT ${EVENTS_BY_TYPE.columns}, failure_class, occurred_at FROM ${database}.${localName(target, "events")} WHERE ${EVENTS_BY_TYPE.where}`,
    ...add("jobs", ["tags Array(String)"]),
    `ALTER TABLE ${database}.${localName(target, "jobs")}${onCluster(cluster)} ADD INDEX IF NOT EXISTS tag_bloom tags TYPE bloom_filter(0.01) GRANULARITY 1`,
    attemptsView(target),
  ];
}

/**
 * Opens and clicks by machines, read from the events' results. The sums separate them in their key, so that each is still one
 * sum; events that the previous release writes meanwhile count as people's.
 */
export function machineColumns(target: EventStoreTarget): readonly string[] {
  const { database, cluster } = checked(target);
  const alter = (name: string, change: string) => `ALTER TABLE ${database}.${name}${onCluster(cluster)} ${change}`;
  const both = (name: string) => [...new Set([localName(target, name), name])];
  const column = "ADD COLUMN IF NOT EXISTS machine Bool";
  return [
    ...["events", "events_by_type"].flatMap((name) =>
      both(name).map((each) => alter(each, `${column} ALIAS ${BY_MACHINE}`)),
    ),
    ...SUMS.flatMap(({ table: { name, orderBy }, columns, groupBy }) => [
      alter(localName(target, name), `${column}, MODIFY ORDER BY ${orderBy.replace(/\)$/, ", machine)")}`),
      ...(cluster === null ? [] : [alter(name, column)]),
      alter(
        `${name}_mv`,
        `MODIFY QUERY
SELECT ${columns}, ${BY_MACHINE} AS machine FROM ${database}.${localName(target, "events")} GROUP BY ${groupBy}, machine`,
      ),
    ]),
    // Last, and in no step before: a view keeps the columns that its table had when it was made.
    ...views(target, "anew"),
  ];
}

/**
 * A row for each try that the log of a finished job has. It is read out of that log and not stored again, so that removing a
 * job from the history also removes its tries.
 */
export function attemptsView({ database, cluster }: EventStoreTarget, how: Creation = "once"): string {
  const log = "Array(Tuple(at Int64, outcome String, relay String, reply String, class String, ms Nullable(UInt32)))";
  return `${CREATE_VIEW[how]} ${database}.attempts${onCluster(cluster)} AS
SELECT tenant_id, job_id, channel, template, recipient_domain, fromUnixTimestamp64Milli(try.1, 'UTC') AS at, toDate(at) AS day,
  try.2 AS outcome, try.3 AS relay, try.4 AS reply,
  toUInt32OrZero(if(channel = 'whatsapp', extract(reply, '(?:^|error )[(]?#?([0-9]{1,6})'),
    extract(reply, '(?:^|[^0-9.])([245][0-9]{2})(?:[^0-9.]|$)'))) AS code,
  extract(reply, '(?:^|[^0-9.])([245][.][0-9]{1,3}[.][0-9]{1,3})(?:[^0-9.]|$)') AS enhanced_code,
  try.5 AS failure_class, try.6 AS ms
FROM (
  SELECT tenant_id, job_id, channel, template, recipient_domain, arrayJoin(JSONExtract(attempts_log, '${log}')) AS try
  FROM ${database}.jobs FINAL
)`;
}

/** Types that a page can filter by and that can be rare. Every job has a `sent`, and most have a `delivered`. */
export const SPARSE_TYPES: readonly EventType[] = EVENT_TYPES.filter((type) => type !== "sent" && type !== "delivered");

/**
 * A month that has ended is merged into one part, so a page that searches it opens one part rather than the remains of a
 * month's inserts.
 */
const MERGED_WHEN_OVER = [
  "min_age_to_force_merge_seconds = 86400",
  "min_age_to_force_merge_on_partition_only = 1",
] as const;

interface Derived {
  readonly table: Table;
  /** The values that one row of `events` adds. */
  readonly columns: string;
  /** The columns that this fills; later steps add others. */
  readonly into: string;
  readonly where: string;
  readonly groupBy: string | null;
}

const CHANNEL = `channel ${formatEnum(FIRST_CHANNELS)} CODEC(ZSTD(1))`;
const EVENT_TYPE = `event_type ${formatEnum(EVENT_TYPES)} CODEC(ZSTD(1))`;
const TENANT = "tenant_id LowCardinality(String) CODEC(ZSTD(1))";

/** The second of an event, by its id. */
const EVENT_SECOND = "toDateTime(intDiv(event_id, 4096000) + 1735689600, 'UTC')";

/** A few rows a minute, whatever the number of tenants. */
const EVENTS_BY_MINUTE: Table = {
  name: "events_by_minute",
  columns: `  minute DateTime('UTC') CODEC(DoubleDelta, ZSTD(1)),
  ${CHANNEL},
  ${EVENT_TYPE},
  events UInt64 CODEC(T64, ZSTD(1))`,
  engine: "SummingMergeTree",
  engineArguments: ["events"],
  partitionBy: "toYYYYMM(minute)",
  orderBy: "(minute, channel, event_type)",
  ttl: "minute + INTERVAL 3 DAY",
  settings: [],
  shardedBy: "rand()",
  isSynced: false,
};

/** Makes a page of a rare type a range; in `events` it would be a scan of the whole tenant. */
const EVENTS_BY_TYPE: Derived = {
  table: {
    name: "events_by_type",
    columns: `  ${TENANT},
  event_id UInt64 CODEC(Delta, ZSTD(1)),
  job_id UUID CODEC(ZSTD(1)),
  ${CHANNEL},
  ${EVENT_TYPE},
  result String DEFAULT '{}' CODEC(ZSTD(3)),
  created_at DateTime64(3, 'UTC') ALIAS ${eventTime("event_id")}`,
    engine: "MergeTree",
    engineArguments: [],
    partitionBy: `toYYYYMM(${eventTime("event_id")})`,
    orderBy: "(tenant_id, event_type, event_id)",
    ttl: FORMER_TTL.events,
    settings: MERGED_WHEN_OVER,
    isSynced: true,
  },
  columns: "tenant_id, event_id, job_id, channel, event_type, result",
  into: "tenant_id, event_id, job_id, channel, event_type, result",
  where: `event_type IN (${SPARSE_TYPES.map((type) => `'${type}'`).join(", ")})`,
  groupBy: null,
};

const EVENTS_HOURLY = sums("events_hourly", { name: "hour", type: "DateTime('UTC')", of: "toStartOfHour" });
const EVENTS_DAILY = sums("events_daily", { name: "day", type: "Date", of: "toDate" });

const SUMS = [EVENTS_HOURLY, EVENTS_DAILY] as const;
const DERIVED: readonly Derived[] = [EVENTS_BY_TYPE, ...SUMS];

/** The events that make a count. */
export function isCounted(count: Count): string {
  const type = count.replace("machine_", "");
  return `event_type = '${type}' AND ${type === count ? "NOT machine" : "machine"}`;
}

/** Only opens and clicks have the member. */
const BY_MACHINE = "JSONExtractBool(result, 'machine')";

/** Events by tenant, time span, channel and type. Kept after the events themselves expire: they hold no personal data. */
function sums(name: string, span: { readonly name: string; readonly type: string; readonly of: string }): Derived {
  return {
    table: {
      name,
      columns: `  ${TENANT},
  ${span.name} ${span.type} CODEC(DoubleDelta, ZSTD(1)),
  ${CHANNEL},
  ${EVENT_TYPE},
  events UInt64 CODEC(T64, ZSTD(1))`,
      engine: "SummingMergeTree",
      engineArguments: ["events"],
      partitionBy: `toYYYYMM(${span.name})`,
      orderBy: `(tenant_id, ${span.name}, channel, event_type)`,
      ttl: null,
      settings: [],
      // Syncing each would add 10 ms to every batch. After a power cut the last seconds can be missing here, but not in events.
      isSynced: false,
    },
    columns: `tenant_id, ${span.of}(${EVENT_SECOND}) AS ${span.name}, channel, event_type, count() AS events`,
    into: `tenant_id, ${span.name}, channel, event_type, events`,
    where: "1",
    groupBy: `tenant_id, ${span.name}, channel, event_type`,
  };
}

/**
 * Creates the table, fills it from the existing events, then creates the view that keeps it current. Events written between
 * filling and the view would be missed, so recorders do not run while an event store with events goes through this step. Once
 * the view exists, a repeated step fills no rows.
 */
function derivedTable(
  target: EventStoreTarget,
  { table: spec, columns, into, where, groupBy }: Derived,
): readonly string[] {
  const { database, cluster } = target;
  const view = `${spec.name}_mv`;
  const select = (events: string, condition: string) =>
    `SELECT ${columns} FROM ${database}.${events} WHERE ${condition}${groupBy === null ? "" : ` GROUP BY ${groupBy}`}`;
  const isNotKept = `(SELECT count() FROM system.tables WHERE database = '${database}' AND name = '${view}') = 0`;
  return [
    ...table(target, spec),
    `INSERT INTO ${database}.${spec.name} (${into}) ${select("events", `${where} AND ${isNotKept}`)}
SETTINGS ${insertSettings(target, `fill-${spec.name}`)}`,
    `CREATE MATERIALIZED VIEW IF NOT EXISTS ${database}.${view}${onCluster(cluster)}
TO ${database}.${localName(target, spec.name)} AS ${select(localName(target, "events"), where)}`,
  ];
}

/** For analysts. A view keeps the types that its columns had when it was made. */
export function views({ database, cluster }: EventStoreTarget, how: Creation): readonly string[] {
  const view = (name: string, select: string) =>
    `${CREATE_VIEW[how]} ${database}.${name}${onCluster(cluster)} AS\n${select}`;
  const counts = COUNTS.map((count) => `sumIf(events, ${isCounted(count)}) AS ${count}`).join(", ");
  /** The first event id of a UTC day, or of the day `days` later. */
  const toEventId = (day: string, days: number) =>
    `(toUnixTimestamp(toDateTime(${day} + ${days}, 'UTC')) * 1000 - 1735689600000) * 4096`;
  const inRange = `tenant_id = {tenant:String} AND event_id >= ${toEventId("{from:Date}", 0)} AND event_id < ${toEventId("{to:Date}", 1)}`;
  return [
    view("jobs_v", `SELECT *, error, created_at, finished_at, toDate(created_at) AS day FROM ${database}.jobs FINAL`),
    view(
      "delivery_funnel",
      `SELECT tenant_id, day, channel, ${counts} FROM ${database}.events_daily GROUP BY tenant_id, day, channel`,
    ),
    view(
      "bounce_rate",
      `SELECT tenant_id, day, sent, bounced, complained, round(bounced / nullIf(sent, 0), 5) AS bounce_rate,
  round(complained / nullIf(sent, 0), 5) AS complaint_rate
FROM ${database}.delivery_funnel WHERE channel = 'email'`,
    ),
    view(
      "time_to_deliver",
      `SELECT channel, toDate(sent_at) AS day, count() AS jobs, quantiles(0.5, 0.9, 0.99)(seconds) AS seconds_p50_p90_p99
FROM (
  SELECT any(channel) AS channel, minIf(created_at, event_type = 'sent') AS sent_at,
    dateDiff('millisecond', sent_at, minIf(created_at, event_type = 'delivered')) / 1000 AS seconds
  FROM ${database}.events WHERE ${inRange} AND event_type IN ('sent', 'delivered')
  GROUP BY job_id HAVING countIf(event_type = 'sent') > 0 AND countIf(event_type = 'delivered') > 0
)
GROUP BY channel, day ORDER BY day, channel`,
    ),
    view(
      "template_results",
      `SELECT template, any(channel) AS channel, uniqExact(job_id) AS jobs, ${COUNTS.map((count) => `uniqExactIf(job_id, ${isCounted(count)}) AS ${count}`).join(", ")}
FROM (
  SELECT e.job_id AS job_id, e.channel AS channel, e.event_type AS event_type, e.machine AS machine, j.template AS template
  FROM ${database}.events AS e
  INNER JOIN (SELECT job_id, template FROM ${database}.jobs WHERE tenant_id = {tenant:String} AND template != '') AS j
    ON j.job_id = e.job_id
  WHERE ${inRange}
)
GROUP BY template ORDER BY jobs DESC, template`,
    ),
  ];
}
