import { assert } from "../domain/errors.ts";

/** Where the event store's tables are. */
export interface EventStoreTarget {
  readonly database: string;
  /** Name of the ClickHouse cluster that holds the tables in shards and replicas, or null for a single node. */
  readonly cluster: string | null;
}

/** A table of the event store, in the words that are the same on a single node and in a cluster. */
export interface Table {
  readonly name: string;
  readonly columns: string;
  readonly engine: "MergeTree" | "ReplacingMergeTree" | "SummingMergeTree";
  readonly engineArguments: readonly string[];
  readonly partitionBy: string;
  readonly orderBy: string;
  /** Null: its rows stay. */
  readonly ttl: string | null;
  readonly settings: readonly string[];
  /** Whether an insert is answered only when its rows are on disk. */
  readonly isSynced: boolean;
}

/**
 * An event's own time (see core's event clock), never stored. The quarter of a millisecond makes the division exact, and
 * this form of it, unlike `fromUnixTimestamp64Milli`, is one that the primary key is searched by.
 */
export const eventTime = (column: string) =>
  `CAST((intDiv(${column}, 4096) + 1735689600000.25) / 1000, 'DateTime64(3, \\'UTC\\')')`;

/** A word of a closed set; the numbers are stored, so new words are added behind the old ones. */
export const enumOf = (words: readonly string[]) =>
  `Enum8(${words.map((word, i) => `'${word}' = ${i + 1}`).join(", ")})`;

/** The table that a node's rows are in: in a cluster, the one of the plain name is a face over all nodes'. */
export function localName({ cluster }: EventStoreTarget, name: string): string {
  return cluster === null ? name : `${name}_local`;
}

/** A table; in a cluster, one on every node, and one that spreads rows over the shards by tenant. */
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
ENGINE = Distributed('${cluster}', '${database}', '${local}', cityHash64(tenant_id))`,
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
 * An insert is answered when it is on disk, because the queue then forgets its rows. Measured: 6 ms more for a small
 * batch of events and jobs, nothing for a large one.
 */
const ON_DISK = ["fsync_after_insert = 1", "fsync_part_directory = 1"] as const;

/** How many inserts, and for how long, a table remembers tokens of. Without it a repeat is stored twice. */
export function window(cluster: string | null): string {
  return cluster === null
    ? "non_replicated_deduplication_window = 10000"
    : "replicated_deduplication_window = 10000, replicated_deduplication_window_seconds = 604800";
}

export function onCluster(cluster: string | null): string {
  return cluster === null ? "" : ` ON CLUSTER '${cluster}'`;
}

/** Throws where a name is not plain: names become part of statements. */
export function checked(target: EventStoreTarget): EventStoreTarget {
  assert(/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(target.database), "the database's name is an identifier");
  assert(
    target.cluster === null || /^[A-Za-z0-9_.-]{1,63}$/.test(target.cluster),
    "the cluster's name is a plain word",
  );
  return target;
}
