import { assert } from "../core/errors.ts";
import { EVENT_TYPES } from "../core/event.ts";
import { CHANNELS } from "../core/job.ts";

/** Where the ledger's tables are. */
export interface LedgerTarget {
  readonly database: string;
  /** Name of the ClickHouse cluster that holds the tables in shards and replicas, or null for a single node. */
  readonly cluster: string | null;
}

/** One step of the schema. Every statement can be repeated: a step that died half-way is run again from its start. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly statements: readonly string[];
}

/** What must exist before the migrations' own table can be asked. */
export function ledgerFoundation(target: LedgerTarget): readonly string[] {
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

/** All steps, oldest first. A released step never changes; what comes later is another entry. */
export function ledgerMigrations(target: LedgerTarget): readonly Migration[] {
  const { database } = checked(target);
  return [
    {
      version: 1,
      name: "events and jobs",
      statements: [
        ...table(target, EVENTS),
        ...table(target, JOBS),
        `CREATE VIEW IF NOT EXISTS ${database}.events_v${onCluster(target.cluster)} AS
SELECT *, created_at, toDate(created_at) AS day FROM ${database}.events`,
      ],
    },
  ];
}

/** Settings of an insert, so that a repeat under the same token changes nothing whatever the server's defaults are. */
export function insertSettings({ cluster }: LedgerTarget, token: string): string {
  assert(/^[A-Za-z0-9:_./-]{1,200}$/.test(token), "a deduplication token is made of safe characters");
  const settings = [
    `insert_deduplication_token = '${token}'`,
    "insert_deduplicate = 1",
    "deduplicate_blocks_in_dependent_materialized_views = 1",
    // Each insert is a whole batch already, and is answered when it can be read.
    "async_insert = 0",
  ];
  if (cluster !== null) settings.push("distributed_foreground_insert = 1", ...CLUSTER_SETTINGS);
  return settings.join(", ");
}

/** Settings of a read. `timeoutMs`: when the server itself gives up. */
export function selectSettings({ cluster }: LedgerTarget, timeoutMs: number): string {
  const settings = [
    // A page reads a few granules: more threads gain nothing and take the cores from the others.
    "max_threads = 1",
    "optimize_read_in_order = 1",
    // Event ids are below 2^53; older servers would quote them.
    "output_format_json_quote_64bit_integers = 0",
    `max_execution_time = ${Math.ceil(timeoutMs / 1000)}`,
  ];
  if (cluster !== null) settings.push("optimize_skip_unused_shards = 1", ...CLUSTER_SETTINGS);
  return settings.join(", ");
}

/** Reads and writes prefer the same replica, so that a reader sees the batches in the order in which they came. */
const CLUSTER_SETTINGS = ["load_balancing = 'in_order'"] as const;

interface Table {
  readonly name: string;
  readonly columns: string;
  readonly engine: "MergeTree" | "ReplacingMergeTree";
  readonly engineArguments: readonly string[];
  readonly partitionBy: string;
  readonly orderBy: string;
  readonly ttl: string;
  readonly settings: readonly string[];
}

/**
 * An event's own time (see core's event clock), never stored. The quarter of a millisecond makes the division exact, and
 * this form of it, unlike `fromUnixTimestamp64Milli`, is one that the primary key is searched by.
 */
const eventTime = (column: string) =>
  `CAST((intDiv(${column}, 4096) + 1735689600000.25) / 1000, 'DateTime64(3, \\'UTC\\')')`;

const enumOf = (words: readonly string[]) => `Enum8(${words.map((word, i) => `'${word}' = ${i + 1}`).join(", ")})`;

/** One row an event. A page is a range of the key; a job's events are found by the bloom filter. */
const EVENTS: Table = {
  name: "events",
  columns: `  tenant_id LowCardinality(String) CODEC(ZSTD(1)),
  event_id UInt64 CODEC(Delta, ZSTD(1)),
  job_id UUID CODEC(ZSTD(1)),
  channel ${enumOf(CHANNELS)} CODEC(ZSTD(1)),
  event_type ${enumOf(EVENT_TYPES)} CODEC(ZSTD(1)),
  result String DEFAULT '{}' CODEC(ZSTD(3)),
  created_at DateTime64(3, 'UTC') ALIAS ${eventTime("event_id")},
  INDEX job_bloom job_id TYPE bloom_filter(0.01) GRANULARITY 1`,
  engine: "MergeTree",
  engineArguments: [],
  partitionBy: `toYYYYMM(${eventTime("event_id")})`,
  orderBy: "(tenant_id, event_id)",
  ttl: "toDateTime(intDiv(event_id, 4096000) + 1735689600, 'UTC') + INTERVAL 13 MONTH",
  settings: [],
};

/**
 * One row a final state of a job; the newest version counts. UUIDs sort by their second half, hence the number, which
 * sorts by time. Months are the job's own, so that all its versions meet in one partition.
 */
const JOBS: Table = {
  name: "jobs",
  columns: `  tenant_id LowCardinality(String) CODEC(ZSTD(1)),
  job_id UUID CODEC(ZSTD(1)),
  channel ${enumOf(CHANNELS)} CODEC(ZSTD(1)),
  status ${enumOf(["success", "failed", "suppressed"])} CODEC(ZSTD(1)),
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
  ttl: "toDateTime(UUIDv7ToDateTime(job_id, 'UTC')) + INTERVAL 90 DAY",
  settings: ["index_granularity = 1024"],
};

/** A table; in a cluster, one on every node, and one that spreads rows over the shards by tenant. */
function table(target: LedgerTarget, spec: Table): readonly string[] {
  const { database, cluster } = target;
  const local = cluster === null ? spec.name : `${spec.name}_local`;
  const engine =
    cluster === null
      ? `${spec.engine}(${spec.engineArguments.join(", ")})`
      : replicated(
          spec.engine,
          { path: `/clickhouse/tables/{shard}/${database}/${local}`, replica: "{replica}" },
          spec.engineArguments,
        );
  const settings = [...spec.settings, window(cluster), "ttl_only_drop_parts = 1", ...ON_DISK];
  const statements = [
    `CREATE TABLE IF NOT EXISTS ${database}.${local}${onCluster(cluster)} (
${spec.columns}
) ENGINE = ${engine}
PARTITION BY ${spec.partitionBy}
ORDER BY ${spec.orderBy}
TTL ${spec.ttl}
SETTINGS ${settings.join(", ")}`,
  ];
  if (cluster !== null) {
    statements.push(
      `CREATE TABLE IF NOT EXISTS ${database}.${spec.name}${onCluster(cluster)} AS ${database}.${local}
ENGINE = Distributed('${cluster}', '${database}', '${local}', cityHash64(tenant_id))`,
    );
  }
  return statements;
}

function replicated(
  engine: Table["engine"],
  { path, replica }: { readonly path: string; readonly replica: string },
  engineArguments: readonly string[] = [],
): string {
  return `Replicated${engine}(${[`'${path}'`, `'${replica}'`, ...engineArguments].join(", ")})`;
}

/**
 * An insert is answered when it is on disk, because the journal then forgets its rows. Measured: 6 ms more for a small
 * batch of events and jobs, nothing for a large one.
 */
const ON_DISK = ["fsync_after_insert = 1", "fsync_part_directory = 1"] as const;

/** How many inserts, and for how long, a table remembers tokens of. Without it a repeat is stored twice. */
function window(cluster: string | null): string {
  return cluster === null
    ? "non_replicated_deduplication_window = 10000"
    : "replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800";
}

function onCluster(cluster: string | null): string {
  return cluster === null ? "" : ` ON CLUSTER '${cluster}'`;
}

function checked(target: LedgerTarget): LedgerTarget {
  assert(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(target.database), "the database's name is an identifier");
  assert(
    target.cluster === null || /^[A-Za-z0-9_.-]{1,63}$/.test(target.cluster),
    "the cluster's name is a plain word",
  );
  return target;
}
