import { uptime } from "node:os";
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import type { Calls } from "../domain/calls.ts";
import type { Clock } from "../domain/clock.ts";
import type { ContentSeal } from "../domain/content-seal.ts";
import type { HistoryErasure, TenantHistory } from "../domain/erasure.ts";
import { ConfigurationError } from "../domain/errors.ts";
import type { EventFeed } from "../domain/event-store.ts";
import type { AllFinishedJobs, FinishedJobs } from "../domain/job-search.ts";
import { limits } from "../domain/limits.ts";
import type { RecipientIndex } from "../domain/recipient-index.ts";
import type { ReadinessProbe } from "../domain/report.ts";
import type { FailedJobs } from "../domain/retry.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import { ClickHouse, connectClickHouse } from "../events/clickhouse.ts";
import { ClickHouseEventExport } from "../events/clickhouse-event-export.ts";
import { ClickHouseEventFeed } from "../events/clickhouse-event-feed.ts";
import { ClickHouseEventMetrics } from "../events/clickhouse-event-metrics.ts";
import { ClickHouseEventReader } from "../events/clickhouse-event-reader.ts";
import { ClickHouseEventWriter } from "../events/clickhouse-event-writer.ts";
import { RecipientErasure } from "../events/erase-recipient.ts";
import { EventStoreBelonging } from "../events/event-store-belonging.ts";
import { type EventStoreHealth, eventStoreHealth, newestEventMs } from "../events/event-store-health.ts";
import { EventStoreProbe } from "../events/event-store-probe.ts";
import { ClickHouseFailedJobs } from "../events/failed-jobs.ts";
import type { FailedPayloadPorts } from "../events/failed-payloads.ts";
import { ClickHouseFinishedJobs } from "../events/finished-jobs.ts";
import { eventStoreIdentity, migrateEventStore } from "../events/migrate-event-store.ts";
import { exportsOf, ParquetFiles } from "../events/parquet-files.ts";
import { serverUpMs, settleForPowerCuts } from "../events/power-cuts.ts";
import { TenantRemoval } from "../events/remove-tenant.ts";
import { ExpiredHistory, type ExpiredHistoryPorts } from "../events/retention.ts";
import type { DemoPorts } from "../events/write-demo-history.ts";
import type { AnalystAccess, Chdb } from "../storage/chdb.ts";
import type { ClickHouseHttp } from "../storage/clickhouse-http.ts";
import { connectPostgres } from "../storage/connect-postgres.ts";
import type { OpenDatabase } from "../storage/database.ts";
import { migrate } from "../storage/migrate.ts";
import { openingStore } from "../storage/opening-store.ts";
import { type EmbeddedPostgres, openPglite } from "../storage/pglite.ts";
import { startRedisChild } from "../storage/redis-child.ts";
import { openRemotePglite } from "../storage/remote-pglite.ts";
import { type EventStoreClients, openRemoteChdb } from "../storage/served-chdb.ts";
import { beginFolder } from "../storage/unfinished-folder.ts";
import type { AppChannel } from "./app-channel.ts";
import { openListener } from "./open-listener.ts";

const REGISTRY = "the registry (PostgreSQL)";
const EVENT_STORE = "the event store (ClickHouse)";
const STATEMENT_TIMEOUT_MS = 20_000;
/** A schema step may have to process all existing data. */
const MIGRATION_TIMEOUT_MS = 30 * 60_000;
/** Longer than the engine's own deadline, whose error says what went wrong. */
const EXPORT_TIMEOUT_MS = limits.exportFileMsMax + 5_000;

/** Whether any store of this process is in the data folder. */
export function hasEmbeddedStore(config: Config): boolean {
  return (
    config.redis === null || config.databaseUrl === null || (config.clickhouseUrl === null && usesEventStore(config))
  );
}

/** A process that only delivers uses the event store if there is a server to ask, but does not open an engine for it. */
export function usesEventStore({ clickhouseUrl, roles }: Config): boolean {
  return clickhouseUrl !== null || roles.some((role) => role !== "dispatcher");
}

/** The address of Redis; if none is configured, starts our own. */
export async function openRedis(
  { config, clock, telemetry }: { readonly config: Config; readonly clock: Clock; readonly telemetry: Telemetry },
  onExit: (reason: string) => void,
): Promise<{ readonly address: RedisAddress; close(): Promise<void> }> {
  if (config.redis !== null) return { address: config.redis, close: async () => {} };
  const child = await startRedisChild({ folder: join(config.home, "redis"), telemetry, clock, onExit });
  return { address: child.address, close: () => child.stop() };
}

/**
 * Whether opening a store brings its schema up to date. An embedded store is always migrated, because no other program could do
 * it. A server's is migrated on request; otherwise an old schema is refused later.
 */
export type Schema = "migrate" | "leave";

/** A store that the other processes of a start get access to. */
interface Shared {
  serveTo(calls: Calls): void;
}

/** The registry's database. */
export async function openDatabase(
  config: Config,
  schema: Schema,
): Promise<OpenDatabase & Shared & { readonly postgres: EmbeddedPostgres | null }> {
  const { databaseUrl, home } = config;
  const postgres = databaseUrl === null ? await openPglite(join(home, "postgres")) : null;
  const database = { ...(postgres ?? (await connectShared(databaseUrl ?? ""))), postgres };
  const bringUp = () => migrate(database.db);
  try {
    if (databaseUrl === null) await openingStore({ store: REGISTRY, folder: join(home, "postgres") }, bringUp);
    else if (schema === "migrate") await bringUp();
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

/** The registry's database, in a child whose main process may hold it. */
export async function joinDatabase({ databaseUrl }: Config, main: Calls): Promise<OpenDatabase> {
  return databaseUrl === null ? openRemotePglite(main) : await connectPostgres(databaseUrl);
}

/** A server has an address that every process knows. */
async function connectShared(url: string): Promise<OpenDatabase & Shared> {
  return { ...(await connectPostgres(url)), serveTo: NOTHING };
}

const NOTHING = () => undefined;

export interface OpenEventStore {
  /** Stores recipients by this index, and what failed jobs were to send under this seal. */
  writer(ports: FailedPayloadPorts): ClickHouseEventWriter;
  readonly reader: ClickHouseEventReader;
  readonly probe: ReadinessProbe;
  readonly feed: EventFeed;
  /** Finds recipients by this index. */
  finishedJobs(recipients: RecipientIndex): FinishedJobs & AllFinishedJobs;
  /** Opens what was sealed so. */
  failedJobs(seal: ContentSeal): FailedJobs;
  /** Erases recipients by this index. */
  erasure(recipients: RecipientIndex): HistoryErasure;
  readonly removal: TenantHistory;
  readonly metrics: ClickHouseEventMetrics;
  readonly exports: ClickHouseEventExport;
  /** The id of this event store. Rejects with `ConfigurationError` if its schema is not current. */
  identity(): Promise<string>;
  /** The queue that it belongs to. */
  readonly belonging: EventStoreBelonging;
  health(): Promise<EventStoreHealth>;
  /** The time (unix ms) of the newest event; null: there is none. */
  newestEventMs(): Promise<number | null>;
  /** Removes what is too old. */
  expired(ports: Pick<ExpiredHistoryPorts, "agreedMs" | "telemetry">): ExpiredHistory;
  /** For histories that never happened. */
  readonly demo: DemoPorts;
  close(): Promise<void>;
}

export interface EventStoreOptions {
  readonly config: Config;
  /** That its tables must know. */
  readonly channels: readonly AppChannel[];
  readonly clock: Clock;
}

const namesOf = ({ channels }: EventStoreOptions) => channels.map(({ name }) => name);

/** The event store's database. */
export async function openEventStore(
  options: EventStoreOptions,
  schema: Schema,
): Promise<OpenEventStore & Shared & { readonly chdb: Chdb | null }> {
  const { config } = options;
  if (config.clickhouseUrl === null) return openEmbedded(options);
  const clients = connectEventStore(config);
  try {
    if (schema === "migrate") await bringUp(clients, options);
  } catch (error) {
    await clients.close();
    throw error;
  }
  const eventStore = eventStoreOver(clients, { ...options, exportFolder: exportsOf(config.home) });
  return { ...eventStore, chdb: null, serveTo: NOTHING };
}

async function openEmbedded(options: EventStoreOptions) {
  const { config } = options;
  const folder = clickhouseFolder(config.home);
  return await openingStore({ store: EVENT_STORE, folder, lastWords: () => emptyDefinition(folder) }, async () => {
    const isWhole = await beginFolder(folder);
    const chdb = await openEngine(folder, analystAccess(config));
    try {
      await bringUp(chdb, options);
      await isWhole();
    } catch (error) {
      await chdb.close();
      throw error;
    }
    const eventStore = eventStoreOver(chdb, { ...options, exportFolder: exportsOf(config.home) });
    return { ...eventStore, chdb, serveTo: (calls: Calls) => chdb.serveTo(calls) };
  });
}

/** A table's or database's definition that a full disk has left empty; the engine opens nothing beside it. */
function emptyDefinition(folder: string): string | null {
  const definitions = new Bun.Glob("{metadata,store}/**/*.sql").scanSync({ cwd: folder, absolute: true });
  const empty = Array.from(definitions).find((file) => Bun.file(file).size === 0);
  return empty === undefined ? null : `${empty} is empty`;
}

async function bringUp({ writer: client }: EventStoreClients, options: EventStoreOptions): Promise<void> {
  const { config, clock } = options;
  const migrating = new ClickHouse({ client, clock, timeoutMs: MIGRATION_TIMEOUT_MS });
  await migrateEventStore(migrating, targetOf(config), namesOf(options));
  await settleForPowerCuts(migrating, targetOf(config));
}

/** The event store's database, in the named child, whose main process may hold it. */
export function joinEventStore(
  options: EventStoreOptions,
  { calls, name }: { calls: Calls; name: string },
): OpenEventStore {
  const { config } = options;
  const clients = config.clickhouseUrl === null ? openRemoteChdb(calls) : connectEventStore(config);
  // A folder of its own, which it may empty.
  return eventStoreOver(clients, { ...options, exportFolder: exportsOf(config.home, name) });
}

const targetOf = (config: Config) => ({ database: config.clickhouseDatabase, cluster: config.clickhouseCluster });

function eventStoreOver(
  clients: EventStoreClients & { close(): Promise<void> },
  options: EventStoreOptions & { readonly exportFolder: string },
): OpenEventStore {
  const { config, clock, exportFolder } = options;
  const target = targetOf(config);
  const over = (client: EventStoreClients["writer"], timeoutMs = STATEMENT_TIMEOUT_MS) =>
    new ClickHouse({ client, clock, timeoutMs });
  const reading = over(clients.reader);
  const exporting = over(clients.exporter, EXPORT_TIMEOUT_MS);
  const engine = { writing: exporting, beside: reading };
  const files = config.clickhouseUrl === null ? new ParquetFiles(engine, exportFolder) : null;
  const retention = { eventsMonths: config.eventsKeptMonths, jobsDays: config.jobsKeptDays };
  // An engine of this machine has lost nothing since this machine is up.
  const upMs = () => (config.clickhouseUrl === null ? Promise.resolve(uptime() * 1000) : serverUpMs(reading, target));
  const writer = (ports: FailedPayloadPorts | null) =>
    new ClickHouseEventWriter(over(clients.writer), target, clock, { ports, upMs });
  return {
    writer,
    // Recipients of a history that never happened are not looked for: their domains are enough.
    demo: { reading, writer: writer(null), target },
    reader: new ClickHouseEventReader(reading, target, clock),
    probe: new EventStoreProbe(over(clients.prober), target),
    feed: new ClickHouseEventFeed(reading, target),
    finishedJobs: (recipients) => new ClickHouseFinishedJobs(reading, target, recipients),
    erasure: (recipients) =>
      new RecipientErasure({ reading, writing: over(clients.writer), target, recipients, clock }),
    removal: new TenantRemoval({ reading, writing: over(clients.writer) }, target),
    failedJobs: (seal) => new ClickHouseFailedJobs({ clickhouse: reading, target, seal, clock }),
    metrics: new ClickHouseEventMetrics(reading, target),
    exports: new ClickHouseEventExport(exporting, target, files),
    health: () => eventStoreHealth(reading, target),
    newestEventMs: () => newestEventMs(reading, target),
    expired: (ports) =>
      new ExpiredHistory({
        clickhouse: { reading, writing: over(clients.writer) },
        target,
        retention,
        clock,
        ...ports,
      }),
    identity: () => eventStoreIdentity(reading, target, namesOf(options)),
    belonging: new EventStoreBelonging(reading, over(clients.writer), target),
    close: () => clients.close(),
  };
}

function connectEventStore({ clickhouseUrl, clickhouseUser, clickhousePassword }: Config) {
  const address = { url: clickhouseUrl ?? "", user: clickhouseUser, password: clickhousePassword ?? "" };
  return connectClickHouse(address);
}

const clickhouseFolder = (home: string) => join(home, "clickhouse");

/**
 * Its library of half a gigabyte is loaded here at the earliest: most processes do without, and it is not made for every machine.
 * Rejects with `ConfigurationError` on those.
 */
async function openEngine(folder: string, access: AnalystAccess | null): Promise<Chdb> {
  const { openChdb } = await import("../storage/chdb.ts").catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError(`the embedded ClickHouse does not run here: set CLICKHOUSE_URL (${why})`);
  });
  return openChdb(folder, access);
}

/** Null: only we read the engine, which is then opened as it is. */
function analystAccess({ clickhouseHttpPort, clickhouseDatabase, home }: Config): AnalystAccess | null {
  if (clickhouseHttpPort === 0) return null;
  return { folder: join(home, "clickhouse-access"), database: clickhouseDatabase };
}

/** Opens the in-process event store to analysts' tools, or returns null if not configured. */
export async function openToAnalysts(config: Config, telemetry: Telemetry): Promise<ClickHouseHttp | null> {
  const { clickhouseHttpPort: port, clickhouseHttpPassword: password, clickhouseDatabase: database, home } = config;
  if (port === 0 || password === null) return null;
  if (config.clickhouseUrl !== null || !usesEventStore(config)) {
    telemetry.log("warn", "CLICKHOUSE_HTTP_PORT is set and has no effect: there is no ClickHouse in this process");
    return null;
  }
  const { serveClickHouseHttp } = await import("../storage/clickhouse-http.ts");
  const at = { host: "127.0.0.1", hostSetting: null, port, portSetting: "CLICKHOUSE_HTTP_PORT" };
  const options = { path: clickhouseFolder(home), database, port, password, telemetry };
  return openListener(at, () => serveClickHouseHttp(options));
}
