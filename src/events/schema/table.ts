import { assert } from "../../domain/errors.ts";

/** Where the event store's tables are. */
export interface EventStoreTarget {
  readonly database: string;
  /** The ClickHouse cluster that holds the tables in shards and replicas, or null for a single node. */
  readonly cluster: string | null;
}

/** A table of the event store, described the same way for a single node and a cluster. */
export interface Table {
  readonly name: string;
  readonly columns: string;
  readonly engine: "MergeTree" | "ReplacingMergeTree" | "SummingMergeTree";
  readonly engineArguments: readonly string[];
  readonly partitionBy: string;
  readonly orderBy: string;
  /** The TTL with which a released step created the table; null: none. */
  readonly ttl: string | null;
  readonly settings: readonly string[];
  /** How a cluster spreads its rows over the shards; by default, by tenant. */
  readonly shardedBy?: string;
  /** Whether an insert is confirmed only once its rows are on disk. */
  readonly isSynced: boolean;
}

/**
 * An event's own time (see the domain's event clock), computed and never stored. The quarter of a millisecond makes the
 * division exact. ClickHouse can search the primary key by this expression, unlike by `fromUnixTimestamp64Milli`.
 */
export const eventTime = (column: string) =>
  `CAST((intDiv(${column}, 4096) + 1735689600000.25) / 1000, 'DateTime64(3, \\'UTC\\')')`;

/** A closed set of words. The numbers are stored, so new words must be appended at the end. */
export const formatEnum = (words: readonly string[]) =>
  `Enum8(${words.map((word, i) => `'${word}' = ${i + 1}`).join(", ")})`;

/** How a view is created: only if missing, or replacing the present one. */
export const CREATE_VIEW = { once: "CREATE VIEW IF NOT EXISTS", anew: "CREATE OR REPLACE VIEW" } as const;
export type Creation = keyof typeof CREATE_VIEW;

/** The table that a node's rows are in: in a cluster, the table with the plain name is a view over all nodes'. */
export function localName({ cluster }: EventStoreTarget, name: string): string {
  return cluster === null ? name : `${name}_local`;
}

/** Creates a table. In a cluster: one on every node, plus one that distributes rows over the shards. */
export function table(target: EventStoreTarget, spec: Table): readonly string[] {
  const { database, cluster } = target;
  const local = localName(target, spec.name);
  const engine =
    cluster === null
      ? `${spec.engine}(${spec.engineArguments.join(", ")})`
      : replicated(
          spec.engine,
          { path: `/clickhouse/tables/{shard}/${database}/${local}`, replica: "{replica}" },
          spec.engineArguments,
        );
  const settings = [...spec.settings, window(cluster), "ttl_only_drop_parts = 1", ...(spec.isSynced ? ON_DISK : [])];
  const statements = [
    `CREATE TABLE IF NOT EXISTS ${database}.${local}${onCluster(cluster)} (
${spec.columns}
) ENGINE = ${engine}
PARTITION BY ${spec.partitionBy}
ORDER BY ${spec.orderBy}
${spec.ttl === null ? "" : `TTL ${spec.ttl}\n`}SETTINGS ${settings.join(", ")}`,
  ];
  if (cluster !== null) {
    statements.push(
      `CREATE TABLE IF NOT EXISTS ${database}.${spec.name}${onCluster(cluster)} AS ${database}.${local}
ENGINE = Distributed('${cluster}', '${database}', '${local}', ${spec.shardedBy ?? "cityHash64(tenant_id)"})`,
    );
  }
  return statements;
}

export function replicated(
  engine: Table["engine"],
  { path, replica }: { readonly path: string; readonly replica: string },
  engineArguments: readonly string[] = [],
): string {
  return `Replicated${engine}(${[`'${path}'`, `'${replica}'`, ...engineArguments].join(", ")})`;
}

/**
 * An insert is confirmed once it is on disk, because the queue then deletes its rows. Measured: 6 ms more for a small batch of
 * events and jobs, no difference for a large one.
 */
export const ON_DISK = ["fsync_after_insert = 1", "fsync_part_directory = 1"] as const;

/** How many insert tokens a table remembers, and for how long. Without this, a repeated insert is stored twice. */
export function window(cluster: string | null): string {
  return cluster === null
    ? "non_replicated_deduplication_window = 10000"
    : "replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800";
}

export function onCluster(cluster: string | null): string {
  return cluster === null ? "" : ` ON CLUSTER '${cluster}'`;
}

/** Throws unless the names are plain: they become part of statements. */
export function checked(target: EventStoreTarget): EventStoreTarget {
  assert(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(target.database), "the database's name is an identifier");
  assert(
    target.cluster === null || /^[A-Za-z0-9_.-]{1,63}$/.test(target.cluster),
    "the cluster's name is a plain word",
  );
  return target;
}

/** The TTLs with which released steps of the schema create tables; `removeTtl` removes them. */
export const FORMER_TTL = {
  events: "toDateTime(intDiv(event_id, 4096000) + 1735689600, 'UTC') + INTERVAL 13 MONTH",
  jobs: "toDateTime(UUIDv7ToDateTime(job_id, 'UTC')) + INTERVAL 90 DAY",
} as const;

/** The channels in the released steps of the schema. Others are appended to the columns in `migrate-event-store.ts`. */
export const FIRST_CHANNELS = ["email", "whatsapp", "wallet"] as const;
