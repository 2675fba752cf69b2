import { EVENT_TYPES } from "../../domain/jobs/event.ts";
import { failedPayloads } from "../failed-payloads.ts";
import {
  failureColumns,
  jobLives,
  jobRecipients,
  machineColumns,
  minuteSums,
  minuteSumsOfFaults,
  rollups,
} from "./rollups.ts";
import {
  CREATE_VIEW,
  type Creation,
  checked,
  type EventStoreTarget,
  eventTime,
  FIRST_CHANNELS,
  FORMER_TTL,
  formatEnum,
  onCluster,
  replicated,
  type Table,
  table,
  window,
} from "./table.ts";

/** One schema step. Every statement can be repeated: a step that died half-way runs again from its start. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly statements: readonly string[];
}

/** Returns the statements for the tables that must exist before the migrations table can be queried. */
export function eventStoreFoundation(target: EventStoreTarget): readonly string[] {
  const { database, cluster } = checked(target);
  return [
    `CREATE DATABASE IF NOT EXISTS ${database}${onCluster(cluster)} ENGINE = Atomic`,
    `CREATE TABLE IF NOT EXISTS ${database}.migrations${onCluster(cluster)} (
  version UInt32,
  name String
) ENGINE = ${cluster === null ? "MergeTree" : replicated("MergeTree", { path: `/clickhouse/tables/${database}/migrations`, replica: "{shard}-{replica}" })}
ORDER BY version
SETTINGS ${window(cluster)}`,
  ];
}

/** All steps, oldest first. A released step never changes; later changes are new entries. */
export function eventStoreMigrations(target: EventStoreTarget): readonly Migration[] {
  checked(target);
  return [
    {
      version: 1,
      name: "events and jobs",
      statements: [...table(target, EVENTS), ...table(target, JOBS)],
    },
    { version: 2, name: "events by type, rollups and views", statements: rollups(target) },
    { version: 3, name: "rows that were refused", statements: table(target, REFUSED_ROWS) },
    { version: 4, name: "recipients and attempts of jobs", statements: jobRecipients(target) },
    { version: 5, name: "sums by minute", statements: minuteSums(target) },
    {
      version: 6,
      name: "jobs that are tried again",
      statements: [...jobLives(target), ...failedPayloads(target)],
    },
    {
      version: 7,
      name: "tags, classes of failures, and tries",
      statements: failureColumns(target),
    },
    {
      version: 8,
      name: "opens and clicks by machines",
      statements: [...machineColumns(target), eventsView(target, "anew")],
    },
    { version: 9, name: "sums by minute without purged jobs", statements: minuteSumsOfFaults(target) },
  ];
}

export function eventsView({ database, cluster }: EventStoreTarget, how: Creation): string {
  return `${CREATE_VIEW[how]} ${database}.events_v${onCluster(cluster)} AS
SELECT *, machine, created_at, toDate(created_at) AS day FROM ${database}.events`;
}

/** One row per event. A page is a range of the key; a job's events are found by the bloom filter. */
const EVENTS: Table = {
  name: "events",
  columns: `  tenant_id LowCardinality(String) CODEC(ZSTD(1)),
  event_id UInt64 CODEC(Delta, ZSTD(1)),
  job_id UUID CODEC(ZSTD(1)),
  channel ${formatEnum(FIRST_CHANNELS)} CODEC(ZSTD(1)),
  event_type ${formatEnum(EVENT_TYPES)} CODEC(ZSTD(1)),
  result String DEFAULT '{}' CODEC(ZSTD(3)),
  created_at DateTime64(3, 'UTC') ALIAS ${eventTime("event_id")},
  INDEX job_bloom job_id TYPE bloom_filter(0.01) GRANULARITY 1`,
  engine: "MergeTree",
  engineArguments: [],
  partitionBy: `toYYYYMM(${eventTime("event_id")})`,
  orderBy: "(tenant_id, event_id)",
  ttl: FORMER_TTL.events,
  settings: [],
  isSynced: true,
};

/**
 * One row per final state of a job; the newest version counts. UUIDs sort by their second half, so a number that sorts by time
 * is stored instead. Partitions go by the job's own month, so all its versions meet in one partition.
 */
const JOBS: Table = {
  name: "jobs",
  columns: `  tenant_id LowCardinality(String) CODEC(ZSTD(1)),
  job_id UUID CODEC(ZSTD(1)),
  channel ${formatEnum(FIRST_CHANNELS)} CODEC(ZSTD(1)),
  status ${formatEnum(["success", "failed", "suppressed"])} CODEC(ZSTD(1)),
  attempts UInt16 CODEC(ZSTD(1)),
  result String DEFAULT '{}' CODEC(ZSTD(3)),
  version UInt64 CODEC(Delta, ZSTD(1)),
  error String ALIAS JSONExtractString(result, 'error'),
  created_at DateTime64(3, 'UTC') ALIAS UUIDv7ToDateTime(job_id, 'UTC'),
  finished_at DateTime64(3, 'UTC') ALIAS ${eventTime("version")}`,
  engine: "ReplacingMergeTree",
  engineArguments: ["version"],
  partitionBy: "toYYYYMM(UUIDv7ToDateTime(job_id, 'UTC'))",
  orderBy: "(tenant_id, toUInt128(job_id))",
  ttl: FORMER_TTL.jobs,
  settings: ["index_granularity = 1024"],
  isSynced: true,
};

/** Rows that no other table accepts, with the reason, for operators to inspect. All columns are text, so it accepts any row. */
const REFUSED_ROWS: Table = {
  name: "refused_rows",
  columns: `  at DateTime('UTC') CODEC(ZSTD(1)),
  tenant_id String CODEC(ZSTD(1)),
  token String CODEC(ZSTD(1)),
  fault String CODEC(ZSTD(1)),
  row String CODEC(ZSTD(3))`,
  engine: "MergeTree",
  engineArguments: [],
  partitionBy: "toYYYYMM(at)",
  orderBy: "at",
  ttl: "at + INTERVAL 90 DAY",
  settings: [],
  isSynced: true,
};
