import { assert } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";
import type { EventStoreTarget } from "./schema/table.ts";

/** Reads and writes prefer the same replica, so a reader sees batches in the order in which they were written. */
const CLUSTER_SETTINGS = ["load_balancing = 'in_order'"] as const;

/**
 * An insert is confirmed once most replicas have it, because the queue then deletes its rows.
 *
 * Inserts stay parallel. Otherwise ClickHouse allows one at a time per table and refuses the others instead of queueing them,
 * and the recorders of different shards would fail each other. The price is that reads cannot be sequentially consistent; they
 * use `FRESH_SETTINGS` instead.
 */
const QUORUM_SETTINGS = [
  "insert_quorum = 'auto'",
  "insert_quorum_parallel = 1",
  `insert_quorum_timeout = ${limits.eventStoreInsertTimeoutMs - 1_000}`,
] as const;

/**
 * Reads avoid replicas that lag by two seconds or more: such a replica could show a tenant's newer events without older ones,
 * and a client that continues from the newest would never see those. If all replicas lag, the read fails and can be repeated.
 */
const FRESH_SETTINGS = [
  "max_replica_delay_for_distributed_queries = 2",
  "fallback_to_stale_replicas_for_distributed_queries = 0",
] as const;

/** Settings of an insert that make repeating it under the same token a no-op, whatever the server's defaults are. */
export function insertSettings({ cluster }: EventStoreTarget, token: string): string {
  assert(/^[A-Za-z0-9:_./-]{1,200}$/.test(token), "a deduplication token is made of safe characters");
  const settings = [
    `insert_deduplication_token = '${token}'`,
    "insert_deduplicate = 1",
    "deduplicate_blocks_in_dependent_materialized_views = 1",
    // Each insert is a whole batch already, and must be readable when it is confirmed.
    "async_insert = 0",
  ];
  if (cluster !== null) settings.push("distributed_foreground_insert = 1", ...QUORUM_SETTINGS, ...CLUSTER_SETTINGS);
  return settings.join(", ");
}

/** Settings of a read. `timeoutMs`: when the server itself gives up. */
export function selectSettings({ cluster }: EventStoreTarget, timeoutMs: number): string {
  const settings = [
    // A page reads a few granules: more threads gain no time and take cores from other queries.
    "max_threads = 1",
    "optimize_read_in_order = 1",
    // Event ids are below 2^53, but older servers would quote them.
    "output_format_json_quote_64bit_integers = 0",
    `max_execution_time = ${Math.ceil(timeoutMs / 1000)}`,
  ];
  if (cluster !== null) settings.push("optimize_skip_unused_shards = 1", ...FRESH_SETTINGS, ...CLUSTER_SETTINGS);
  return settings.join(", ");
}
