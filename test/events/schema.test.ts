import { expect, test } from "bun:test";
import { EVENT_TYPES } from "../../src/domain/jobs/event.ts";
import { limits } from "../../src/domain/limits.ts";
import { eventStoreFoundation, eventStoreMigrations } from "../../src/events/schema/schema.ts";
import { FIRST_CHANNELS } from "../../src/events/schema/table.ts";
import { insertSettings, selectSettings } from "../../src/events/statement-settings.ts";

const single = { database: "waybill", cluster: null };
const cluster = { database: "waybill", cluster: "main" };
const statements = (target: typeof single | typeof cluster) => [
  ...eventStoreFoundation(target),
  ...eventStoreMigrations(target).flatMap((migration) => migration.statements),
];

test("every statement of the schema can be repeated", () => {
  for (const target of [single, cluster]) {
    for (const sql of statements(target)) {
      if (sql.startsWith("INSERT")) expect(sql).toContain("insert_deduplication_token = 'fill-");
      else if (!/MODIFY (SETTING|QUERY)|CREATE OR REPLACE VIEW/.test(sql)) expect(sql).toContain("IF NOT EXISTS");
    }
  }
});

test("every table with rows of its own remembers the tokens of its inserts", () => {
  const remembering = (target: typeof single | typeof cluster) =>
    statements(target)
      .filter((sql) => sql.includes("MergeTree"))
      .map((sql) => /(non_)?replicated_deduplication_window = 10000/.exec(sql)?.[0]);
  expect(remembering(single)).toEqual(Array(9).fill("non_replicated_deduplication_window = 10000"));
  expect(remembering(cluster)).toEqual(Array(9).fill("replicated_deduplication_window = 10000"));
});

test("in a cluster every table is replicated, on every node, and tenants are spread over the shards", () => {
  const schema = statements(cluster).filter((sql) => !sql.startsWith("INSERT"));
  for (const sql of schema) expect(sql).toContain("ON CLUSTER 'main'");
  const all = statements(cluster).join("\n");
  for (const name of ["events", "jobs", "events_by_type", "events_hourly", "events_daily", "refused_rows"]) {
    expect(all).toContain(`'/clickhouse/tables/{shard}/waybill/${name}_local', '{replica}'`);
    expect(all).toContain(`Distributed('main', 'waybill', '${name}_local', cityHash64(tenant_id))`);
  }
  expect(all).toContain("'{replica}', version)");
  expect(insertSettings(cluster, "t")).toContain("distributed_foreground_insert = 1");
  expect(selectSettings(cluster, 1_000)).toContain("optimize_skip_unused_shards = 1");
  expect(statements(single).join("\n")).not.toMatch(/CLUSTER|Replicated|Distributed/);
});

test("in a cluster most replicas have an insert before it is confirmed, and no replica that lags is read from", () => {
  const inserted = insertSettings(cluster, "t");
  expect(inserted).toContain("insert_quorum = 'auto'");
  // A limit of one would refuse a second insert, not make it wait, while another shard's recorder is inserting.
  expect(inserted).toContain("insert_quorum_parallel = 1");
  const [, timeoutMs = "0"] = /insert_quorum_timeout = (\d+)/.exec(inserted) ?? [];
  expect(Number(timeoutMs)).toBeWithin(1_000, limits.eventStoreInsertTimeoutMs);
  const read = selectSettings(cluster, 1_000);
  expect(read).toContain("max_replica_delay_for_distributed_queries = 2");
  expect(read).toContain("fallback_to_stale_replicas_for_distributed_queries = 0");
  for (const settings of [inserted, read]) expect(settings).toContain("load_balancing = 'in_order'");
  expect(insertSettings(single, "t") + selectSettings(single, 1_000)).not.toMatch(/quorum|replica|load_balancing/);
});

test("stored words keep their numbers, and new ones are appended", () => {
  expect(FIRST_CHANNELS).toEqual(["email", "whatsapp", "wallet"]);
  // biome-ignore format: one line an enum
  expect(EVENT_TYPES).toEqual(["sent", "delivered", "read", "opened", "clicked", "bounced", "complained", "failed", "suppressed"]);
});

test("an unsafe name never becomes part of a statement", () => {
  for (const database of ["", "a b", "a;b", "a`b", "1a", "a.b"]) {
    expect(() => eventStoreFoundation({ database, cluster: null })).toThrow("broken invariant");
    expect(() => eventStoreMigrations({ database, cluster: null })).toThrow("broken invariant");
  }
  expect(() => eventStoreMigrations({ database: "a", cluster: "b' c" })).toThrow("broken invariant");
  expect(() => insertSettings(single, "it's")).toThrow("broken invariant");
});
