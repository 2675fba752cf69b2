import { join } from "node:path";
import type { Config } from "../config/config.ts";
import type { Calls } from "../domain/calls.ts";
import type { Clock } from "../domain/clock.ts";
import { limits } from "../domain/limits.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import { ClickHouse } from "../events/clickhouse.ts";
import { ClickHouseEventExport } from "../events/clickhouse-event-export.ts";
import { ClickHouseEventReader } from "../events/clickhouse-event-reader.ts";
import { ClickHouseEventWriter } from "../events/clickhouse-event-writer.ts";
import { connectClickHouse } from "../events/connect-clickhouse.ts";
import { eventStoreIdentity, migrateEventStore } from "../events/migrate-event-store.ts";
import { ParquetFiles } from "../events/parquet-files.ts";
import { applyRetention } from "../events/retention.ts";
import { type AnalystAccess, openChdb } from "../storage/chdb.ts";
import { type ClickHouseHttp, serveClickHouseHttp } from "../storage/clickhouse-http.ts";
import { connectPostgres } from "../storage/connect-postgres.ts";
import type { OpenDatabase } from "../storage/database.ts";
import { migrate } from "../storage/migrate.ts";
import { openPglite } from "../storage/pglite.ts";
import { startRedisChild } from "../storage/redis-child.ts";
import { openRemotePglite } from "../storage/remote-pglite.ts";
import { type EventStoreClients, openRemoteChdb } from "../storage/served-chdb.ts";

const STATEMENT_TIMEOUT_MS = 20_000;
/** A step of the schema may have to go over all that is there. */
const MIGRATION_TIMEOUT_MS = 30 * 60_000;
/** Beyond the deadline that the engine keeps itself, which says what was wrong. */
const EXPORT_TIMEOUT_MS = limits.exportFileMsMax + 5_000;

/** Whether any store of this process is in the data folder. */
export function hasEmbeddedStore(config: Config): boolean {
  return (
    config.redis === null || config.databaseUrl === null || (config.clickhouseUrl === null && usesEventStore(config))
  );
}

/** A process that only delivers looks into the event store where there is a server to ask, but opens no engine for it. */
export function usesEventStore({ clickhouseUrl, roles }: Config): boolean {
  return clickhouseUrl !== null || roles.some((role) => role !== "dispatcher");
}

/** Where Redis is; where no address is given, after starting one of our own. */
export async function openRedis(
  { config, clock, telemetry }: { readonly config: Config; readonly clock: Clock; readonly telemetry: Telemetry },
  onExit: (reason: string) => void,
): Promise<{ readonly address: RedisAddress; close(): Promise<void> }> {
  if (config.redis !== null) return { address: config.redis, close: async () => {} };
  const child = await startRedisChild({ folder: join(config.home, "redis"), telemetry, clock, onExit });
  return { address: child.address, close: () => child.stop() };
}

/**
 * Whether a store is brought to the current schema as it is opened. An embedded one always is: nobody else could do it.
 * A server's is when it is asked for; without that an old schema is refused later.
 */
export type Schema = "migrate" | "leave";

/** What the other processes of a start are let into. */
interface Shared {
  serveTo(calls: Calls): void;
}

/** The registry's database. */
export async function openDatabase(config: Config, schema: Schema): Promise<OpenDatabase & Shared> {
  const { databaseUrl, home } = config;
  const database = databaseUrl === null ? await openPglite(join(home, "postgres")) : await connectShared(databaseUrl);
  try {
    if (databaseUrl === null || schema === "migrate") await migrate(database.db);
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

/** The registry's database, in a process whose main process may have it. */
export async function joinDatabase({ databaseUrl }: Config, main: Calls): Promise<OpenDatabase> {
  return databaseUrl === null ? openRemotePglite(main) : await connectPostgres(databaseUrl);
}

/** A server has an address that every process knows. */
async function connectShared(url: string): Promise<OpenDatabase & Shared> {
  return { ...(await connectPostgres(url)), serveTo: NOTHING };
}

const NOTHING = () => undefined;

export interface OpenEventStore {
  readonly writer: ClickHouseEventWriter;
  readonly reader: ClickHouseEventReader;
  readonly exports: ClickHouseEventExport;
  /** Which event store this is. Rejects with `ConfigurationError` where its schema is not the current one. */
  identity(): Promise<string>;
  close(): Promise<void>;
}

/** The event store's database. */
export async function openEventStore(config: Config, clock: Clock, schema: Schema): Promise<OpenEventStore & Shared> {
  const { clickhouseUrl, home, eventsKeptMonths: eventsMonths, jobsKeptDays: jobsDays } = config;
  const server = clickhouseUrl === null ? openChdb(clickhouseFolder(home), analystAccess(config)) : null;
  const clients = server ?? connectEventStore(config);
  try {
    if (clickhouseUrl === null || schema === "migrate") {
      const migrating = new ClickHouse({ client: clients.writer, clock, timeoutMs: MIGRATION_TIMEOUT_MS });
      await migrateEventStore(migrating, targetOf(config));
      await applyRetention(migrating, targetOf(config), { eventsMonths, jobsDays });
    }
  } catch (error) {
    await clients.close();
    throw error;
  }
  const eventStore = eventStoreOver(clients, { config, clock, exportFolder: join(home, "export") });
  return { ...eventStore, serveTo: server === null ? NOTHING : (calls) => server.serveTo(calls) };
}

/** The event store's database, in the process of that name, whose main process may have it. */
export function joinEventStore(
  config: Config,
  clock: Clock,
  { calls, name }: { calls: Calls; name: string },
): OpenEventStore {
  const clients = config.clickhouseUrl === null ? openRemoteChdb(calls) : connectEventStore(config);
  // A folder of its own, which it may empty.
  return eventStoreOver(clients, { config, clock, exportFolder: join(config.home, `export-${name}`) });
}

const targetOf = (config: Config) => ({ database: config.clickhouseDatabase, cluster: config.clickhouseCluster });

function eventStoreOver(
  clients: EventStoreClients & { close(): Promise<void> },
  { config, clock, exportFolder }: { readonly config: Config; readonly clock: Clock; readonly exportFolder: string },
): OpenEventStore {
  const target = targetOf(config);
  const over = (client: EventStoreClients["writer"], timeoutMs = STATEMENT_TIMEOUT_MS) =>
    new ClickHouse({ client, clock, timeoutMs });
  const reading = over(clients.reader);
  const exporting = over(clients.exporter, EXPORT_TIMEOUT_MS);
  const engine = { writing: exporting, beside: reading };
  const files = config.clickhouseUrl === null ? new ParquetFiles(engine, exportFolder) : null;
  return {
    writer: new ClickHouseEventWriter(over(clients.writer), target, clock),
    reader: new ClickHouseEventReader(reading, target, clock),
    exports: new ClickHouseEventExport(exporting, target, files),
    identity: () => eventStoreIdentity(reading, target),
    close: () => clients.close(),
  };
}

function connectEventStore({ clickhouseUrl, clickhouseUser, clickhousePassword }: Config) {
  const address = { url: clickhouseUrl ?? "", user: clickhouseUser, password: clickhousePassword ?? "" };
  return connectClickHouse(address);
}

const clickhouseFolder = (home: string) => join(home, "clickhouse");

/** Null: nobody but ourselves reads the engine, and it is opened as it comes. */
function analystAccess({ clickhouseHttpPort, clickhouseDatabase, home }: Config): AnalystAccess | null {
  if (clickhouseHttpPort === 0) return null;
  return { folder: join(home, "clickhouse-access"), database: clickhouseDatabase };
}

/** Opens the event store inside this process to analysts' tools, or answers null where that is not asked for. */
export function openToAnalysts(config: Config, telemetry: Telemetry): ClickHouseHttp | null {
  const { clickhouseHttpPort: port, clickhouseHttpPassword: password, clickhouseDatabase: database, home } = config;
  if (port === 0 || password === null) return null;
  if (config.clickhouseUrl !== null || !usesEventStore(config)) {
    telemetry.log("warn", "CLICKHOUSE_HTTP_PORT is set and has no effect: there is no ClickHouse in this process");
    return null;
  }
  return serveClickHouseHttp({ path: clickhouseFolder(home), database, port, password, telemetry });
}
