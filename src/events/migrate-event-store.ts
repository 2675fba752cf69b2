import { ConfigurationError } from "../domain/errors.ts";
import type { ChannelName } from "../domain/job.ts";
import type { ClickHouse } from "./clickhouse.ts";
import { eventStoreFoundation, eventStoreMigrations } from "./schema.ts";
import { insertSettings, selectSettings } from "./statement-settings.ts";
import { FIRST_CHANNELS } from "./stored-channels.ts";
import { type EventStoreTarget, onCluster, replicated, window } from "./table.ts";
import { wideningTo } from "./widening.ts";

/** How long listing the applied migrations may take on the server. */
const LOOK_TIMEOUT_MS = 60_000;

/**
 * Brings the event store's tables to the current schema and returns the versions that it applied. Safe to repeat, even after
 * stopping half-way or from several processes at once: every statement says IF NOT EXISTS or the like.
 */
export async function migrateEventStore(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  channels: readonly ChannelName[] = FIRST_CHANNELS,
): Promise<readonly number[]> {
  for (const statement of eventStoreFoundation(target)) await clickhouse.command(statement);
  const settings = selectSettings(target, LOOK_TIMEOUT_MS);
  const rows = await clickhouse.rows(`SELECT version FROM ${target.database}.migrations SETTINGS ${settings}`);
  const known = new Set(rows.map(([version]) => version));
  const ran: number[] = [];
  for (const { version, name, statements } of eventStoreMigrations(target)) {
    if (known.has(version)) continue;
    for (const statement of statements) await clickhouse.command(statement);
    // Recorded last: a step that died before this line runs again.
    await clickhouse.insert(
      `INSERT INTO ${target.database}.migrations (version, name) SETTINGS ${insertSettings(target, `migration-${version}`)} FORMAT JSONCompactEachRow`,
      `${JSON.stringify([version, name])}\n`,
    );
    ran.push(version);
  }
  for (const statement of await wideningTo(clickhouse, target, { channels, settings })) {
    await clickhouse.command(statement);
  }
  await ensureIdentity(clickhouse, target);
  return ran;
}

/**
 * The id of the event store, by which a queue recognizes the event store it belongs to. Rejects with `ConfigurationError` if
 * its tables do not have this version's schema, with `UnavailableError` if it does not answer.
 */
export async function eventStoreIdentity(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  channels: readonly ChannelName[] = FIRST_CHANNELS,
): Promise<string> {
  const { database } = target;
  const settings = selectSettings(target, LOOK_TIMEOUT_MS);
  const tables = await clickhouse.rows(
    `SELECT name FROM system.tables WHERE database = '${database}' AND name IN ('migrations', 'identity') SETTINGS ${settings}`,
  );
  if (tables.length < 2) throw notCurrent(database);
  const rows = await clickhouse.rows(`SELECT version FROM ${database}.migrations SETTINGS ${settings}`);
  const present = new Set(rows.map(([version]) => Number(version)));
  if (eventStoreMigrations(target).some(({ version }) => !present.has(version))) throw notCurrent(database);
  if ((await wideningTo(clickhouse, target, { channels, settings })).length > 0) throw notCurrent(database);
  const id = await firstIdentity(clickhouse, target);
  if (id === null) throw notCurrent(database);
  return id;
}

function notCurrent(database: string): ConfigurationError {
  return new ConfigurationError(
    `The ClickHouse database ${database} has no current schema: run \`waybill migrate\` (npm run migrate).`,
  );
}

/** Created apart from the migrations, as in the registry. Should two rows have been written, the oldest counts. */
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
  // Sent as a command, which may take as long as any other migration step. If two run at once, the token lets one in.
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
