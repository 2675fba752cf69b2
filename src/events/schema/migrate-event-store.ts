import { assert, ConfigurationError } from "../../domain/errors.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import type { ClickHouse } from "../clickhouse.ts";
import { ensureBelonging } from "../event-store-belonging.ts";
import { FAILED_PAYLOADS, failedPayloads, sealedTarget } from "../failed-payloads.ts";
import { insertSettings, selectSettings } from "../statement-settings.ts";
import { keepsTtl, removeTtl } from "./retention.ts";
import { attemptsView, views } from "./rollups.ts";
import { eventStoreFoundation, eventStoreMigrations, eventsView } from "./schema.ts";
import { type EventStoreTarget, FIRST_CHANNELS, localName, onCluster, replicated, window } from "./table.ts";

/** The first long-term release of ClickHouse with all settings that statements use. */
const [YEAR_MIN, MONTH_MIN] = [24, 8];
/** How long listing the applied migrations may take on the server. */
const LOOK_TIMEOUT_MS = 60_000;

/**
 * Brings the event store's tables to the current schema and returns the versions that it applied. Safe to repeat, even after
 * stopping half-way or from several processes at once: every statement says IF NOT EXISTS or the like. Rejects with
 * `ConfigurationError` if a later version of the program has migrated them.
 */
export async function migrateEventStore(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  channels: readonly ChannelName[] = FIRST_CHANNELS,
): Promise<readonly number[]> {
  await requireVersion(clickhouse);
  for (const statement of eventStoreFoundation(target)) await clickhouse.command(statement);
  const settings = selectSettings(target, LOOK_TIMEOUT_MS);
  const rows = await clickhouse.rows(`SELECT version FROM ${target.database}.migrations SETTINGS ${settings}`);
  const present = new Set(rows.map(([version]) => Number(version)));
  const migrations = eventStoreMigrations(target);
  if (!present.isSubsetOf(new Set(migrations.map(({ version }) => version)))) {
    throw new ConfigurationError(
      "The event store belongs to a later version of Waybill: start that one, or restore a backup.",
    );
  }
  const ran: number[] = [];
  for (const { version, name, statements } of migrations) {
    if (present.has(version)) continue;
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
  // These tables are in another database, which a restored backup may lack.
  for (const statement of failedPayloads(target)) await clickhouse.command(statement);
  await removeTtl(clickhouse, target);
  await ensureIdentity(clickhouse, target);
  await ensureBelonging(clickhouse, target);
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
  await requireVersion(clickhouse);
  const settings = selectSettings(target, LOOK_TIMEOUT_MS);
  const tables = await clickhouse.rows(
    `SELECT name FROM system.tables WHERE database = '${database}' AND name IN ('migrations', 'identity', 'belongs_to') SETTINGS ${settings}`,
  );
  if (tables.length < 3) throw notCurrent(database);
  const rows = await clickhouse.rows(`SELECT version FROM ${database}.migrations SETTINGS ${settings}`);
  const present = new Set(rows.map(([version]) => Number(version)));
  if (eventStoreMigrations(target).some(({ version }) => !present.has(version))) throw notCurrent(database);
  if ((await wideningTo(clickhouse, target, { channels, settings })).length > 0) throw notCurrent(database);
  if (!(await hasFailedPayloads(clickhouse, target, settings))) throw notCurrent(database);
  if (await keepsTtl(clickhouse, target)) throw notCurrent(database);
  const id = await firstIdentity(clickhouse, target);
  if (id === null) throw notCurrent(database);
  return id;
}

/** Checked first, because an old server would only complain about unknown settings. */
async function requireVersion(clickhouse: ClickHouse): Promise<void> {
  const [row] = await clickhouse.rows("SELECT version()");
  const version = String(row?.[0]);
  const [year = 0, month = 0] = version.split(".").map(Number);
  if (year > YEAR_MIN || (year === YEAR_MIN && month >= MONTH_MIN)) return;
  throw new ConfigurationError(
    `ClickHouse is version ${version}: it must be ${YEAR_MIN}.${MONTH_MIN} or later. Debian's own package is older; ClickHouse's packages and images are not.`,
  );
}

async function hasFailedPayloads(clickhouse: ClickHouse, target: EventStoreTarget, settings: string): Promise<boolean> {
  const { database } = sealedTarget(target);
  const found = await clickhouse.rows(
    `SELECT name FROM system.tables WHERE database = '${database}' AND name = '${FAILED_PAYLOADS.name}' SETTINGS ${settings}`,
  );
  return found.length > 0;
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

const TABLES = ["events", "jobs", "events_by_type", "events_hourly", "events_daily", "events_by_minute"] as const;
/** Views that store their columns; a view with parameters resolves its columns at query time. */
const VIEWS = ["events_v", "jobs_v", "delivery_funnel", "attempts"] as const;

/**
 * Returns the statements that add channels missing from a column; none if all are present. Names are stored by number: existing
 * names keep theirs, even for removed channels, and new ones get the next. It changes no row.
 */
async function wideningTo(
  clickhouse: ClickHouse,
  target: EventStoreTarget,
  { channels, settings }: { readonly channels: readonly ChannelName[]; readonly settings: string },
): Promise<readonly string[]> {
  const { database, cluster } = target;
  const rows = await clickhouse.rows(
    `SELECT table, type FROM system.columns WHERE database = '${database}' AND name = 'channel' SETTINGS ${settings}`,
  );
  const known = new Map(rows.map(([name, type]) => [String(name), parseWords(String(type))]));
  const missingIn = (name: string) => {
    const words = known.get(name);
    return words === undefined ? [] : channels.filter((channel) => !words.has(channel));
  };
  const tables = TABLES.flatMap((name) => [...new Set([localName(target, name), name])]);
  const alters = tables.flatMap((name) => {
    const missing = missingIn(name);
    if (missing.length === 0) return [];
    const type = enumWith(known.get(name) ?? new Map(), missing);
    return [`ALTER TABLE ${database}.${name}${onCluster(cluster)} MODIFY COLUMN channel ${type}`];
  });
  // After the tables: a view keeps the types that its columns had when it was made.
  const isViewOld = VIEWS.some((name) => missingIn(name).length > 0);
  return [
    ...alters,
    ...(isViewOld ? [eventsView(target, "anew"), ...views(target, "anew"), attemptsView(target, "anew")] : []),
  ];
}

function enumWith(words: ReadonlyMap<string, number>, more: readonly ChannelName[]): string {
  const last = Math.max(0, ...words.values());
  const all = [...words, ...more.map((channel, i) => [checkedName(channel), last + i + 1] as const)];
  return `Enum8(${all.map(([word, number]) => `'${word}' = ${number}`).join(", ")})`;
}

/** Returns the stored number of each name. */
function parseWords(type: string): ReadonlyMap<string, number> {
  return new Map(Array.from(type.matchAll(/'(\w+)' = (\d+)/g), ([, word = "", number]) => [word, Number(number)]));
}

/** Throws unless the name is plain: names become part of statements. */
function checkedName(channel: ChannelName): string {
  assert(/^[a-z][a-z0-9_]{0,31}$/.test(channel), "a channel's name is a plain word");
  return channel;
}
