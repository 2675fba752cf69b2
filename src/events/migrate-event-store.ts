import { ConfigurationError } from "../domain/errors.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { eventStoreFoundation, eventStoreMigrations } from "./schema.ts";
import { insertSettings, selectSettings } from "./statement-settings.ts";
import { type EventStoreTarget, onCluster, replicated, window } from "./table.ts";

/** How long the look at what has been run may take on the server. */
const LOOK_TIMEOUT_MS = 60_000;

/**
 * Brings the event store's tables to the current schema and answers the versions that it ran. Safe to repeat, also half-way
 * and from several processes at once: every statement says IF NOT EXISTS or the like.
 */
export async function migrateEventStore(clickhouse: ClickHouse, target: EventStoreTarget): Promise<readonly number[]> {
  for (const statement of eventStoreFoundation(target)) await clickhouse.command(statement);
  const settings = selectSettings(target, LOOK_TIMEOUT_MS);
  const rows = await clickhouse.rows(`SELECT version FROM ${target.database}.migrations SETTINGS ${settings}`);
  const known = new Set(rows.map(([version]) => version));
  const ran: number[] = [];
  for (const { version, name, statements } of eventStoreMigrations(target)) {
    if (known.has(version)) continue;
    for (const statement of statements) await clickhouse.command(statement);
    // Noted last: a step that died before this line is run again.
    await clickhouse.insert(
      `INSERT INTO ${target.database}.migrations (version, name) SETTINGS ${insertSettings(target, `migration-${version}`)} FORMAT JSONCompactEachRow`,
      `${JSON.stringify([version, name])}\n`,
    );
    ran.push(version);
  }
  await ensureIdentity(clickhouse, target);
  return ran;
}

/**
 * The id of the event store, by which a queue knows the one that it belongs to. Rejects with `ConfigurationError` when
 * its tables are not those of this version, with `UnavailableError` when it does not answer.
 */
export async function eventStoreIdentity(clickhouse: ClickHouse, target: EventStoreTarget): Promise<string> {
  const { database } = target;
  const settings = selectSettings(target, LOOK_TIMEOUT_MS);
  const tables = await clickhouse.rows(
    `SELECT name FROM system.tables WHERE database = '${database}' AND name IN ('migrations', 'identity') SETTINGS ${settings}`,
  );
  if (tables.length < 2) throw notCurrent(database);
  const rows = await clickhouse.rows(`SELECT version FROM ${database}.migrations SETTINGS ${settings}`);
  const present = new Set(rows.map(([version]) => Number(version)));
  if (eventStoreMigrations(target).some(({ version }) => !present.has(version))) throw notCurrent(database);
  const id = await firstIdentity(clickhouse, target);
  if (id === null) throw notCurrent(database);
  return id;
}

function notCurrent(database: string): ConfigurationError {
  return new ConfigurationError(
    `The ClickHouse database ${database} has no current schema: run \`waybill migrate\` (npm run migrate).`,
  );
}

/** Beside the migrations and not one of them, as in the registry. The oldest row counts, should two have been written. */
async function ensureIdentity(clickhouse: ClickHouse, target: EventStoreTarget): Promise<void> {
  const { database, cluster } = target;
  const engine =
    cluster === null
      ? "MergeTree"
      : replicated("MergeTree", { path: `/clickhouse/tables/${database}/identity`, replica: "{shard}-{replica}" });
  await clickhouse.command(
    `CREATE TABLE IF NOT EXISTS ${database}.identity${onCluster(cluster)} (
  id String,
  created_at DateTime64(6, 'UTC') DEFAULT now64(6)
) ENGINE = ${engine}
ORDER BY created_at
SETTINGS ${window(cluster)}`,
  );
  if ((await firstIdentity(clickhouse, target)) !== null) return;
  // As a command, which may take as long as any other step of a migration. Of two at a time the token lets one in.
  const settings = insertSettings(target, "identity");
  await clickhouse.command(
    `INSERT INTO ${database}.identity (id) SETTINGS ${settings} SELECT toString(generateUUIDv4())`,
  );
}

async function firstIdentity(clickhouse: ClickHouse, target: EventStoreTarget): Promise<string | null> {
  const settings = selectSettings(target, LOOK_TIMEOUT_MS);
  const [row] = await clickhouse.rows(
    `SELECT id FROM ${target.database}.identity ORDER BY created_at, id LIMIT 1 SETTINGS ${settings}`,
  );
  return row === undefined ? null : String(row[0]);
}
