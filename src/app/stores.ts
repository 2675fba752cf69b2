import { uptime } from "node:os";
import { join } from "node:path";
import type { AppChannel } from "../channels/contract.ts";
import type { Config } from "../config/config.ts";
import type { Calls } from "../domain/calls.ts";
import { type Clock, sleep } from "../domain/clock.ts";
import type { ContentSeal } from "../domain/content-seal.ts";
import type { ClickHouseAddress, EventFeed } from "../domain/jobs/event-store.ts";
import type { AllFinishedJobs, FinishedJobs, LaterEvents } from "../domain/jobs/job-search.ts";
import type { OperatorSums } from "../domain/jobs/operator-sums.ts";
import type { ReadinessProbe } from "../domain/jobs/report.ts";
import type { FailedJobs } from "../domain/jobs/retry.ts";
import { limits } from "../domain/limits.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { HistoryErasure, TenantHistory } from "../domain/tenants/erasure.ts";
import type { RecipientIndex } from "../domain/tenants/recipient-index.ts";
import type { RedisAddress } from "../engine/queue/connection.ts";
import { ClickHouse, type ClickHouseServer, connectClickHouse } from "../events/clickhouse.ts";
import { ClickHouseEventExport } from "../events/clickhouse-event-export.ts";
import { ClickHouseEventFeed } from "../events/clickhouse-event-feed.ts";
import { ClickHouseEventMetrics } from "../events/clickhouse-event-metrics.ts";
import { ClickHouseEventReader } from "../events/clickhouse-event-reader.ts";
import { ClickHouseEventWriter } from "../events/clickhouse-event-writer.ts";
import { ClickHouseMailCounts } from "../events/clickhouse-mail-counts.ts";
import { ClickHouseOperatorSums } from "../events/clickhouse-operator-sums.ts";
import { RecipientErasure } from "../events/erase-recipient.ts";
import { EventStoreBelonging } from "../events/event-store-belonging.ts";
import { type EventStoreHealth, eventStoreHealth, newestEventMs } from "../events/event-store-health.ts";
import { EventStoreProbe } from "../events/event-store-probe.ts";
import { ClickHouseFailedJobs } from "../events/failed-jobs.ts";
import type { FailedPayloadPorts } from "../events/failed-payloads.ts";
import { ClickHouseFinishedJobs } from "../events/finished-jobs.ts";
import { TenantRemoval } from "../events/remove-tenant.ts";
import { eventStoreIdentity, migrateEventStore } from "../events/schema/migrate-event-store.ts";
import { serverUpMs, settleForPowerCuts } from "../events/schema/power-cuts.ts";
import { ExpiredHistory, type ExpiredHistoryPorts } from "../events/schema/retention.ts";
import type { DemoPorts } from "../events/write-demo-history.ts";
import { WriteGate } from "../events/write-gate.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { HoldEvents } from "../storage/backup/running-cut.ts";
import { startClickHouseChild } from "../storage/clickhouse/clickhouse-child.ts";
import { openingStore } from "../storage/opening-store.ts";
import { connectPostgres } from "../storage/postgres/connect-postgres.ts";
import type { OpenDatabase } from "../storage/postgres/database.ts";
import { migrate } from "../storage/postgres/migrate.ts";
import { type EmbeddedPostgres, openPglite } from "../storage/postgres/pglite.ts";
import { openRemotePglite } from "../storage/postgres/remote-pglite.ts";
import { startRedisChild } from "../storage/redis/redis-child.ts";
import { beginFolder } from "../storage/unfinished-folder.ts";

const REGISTRY = "the registry (PostgreSQL)";
const EVENT_STORE = "the event store (ClickHouse)";
const STATEMENT_TIMEOUT_MS = 20_000;
/** A schema step may have to process all existing data. */
const MIGRATION_TIMEOUT_MS = 30 * 60_000;
const INSERTS_POLL_MS = 20;
/** Longer than the server's own deadline, whose error says what went wrong. */
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
  finishedJobs(recipients: RecipientIndex): FinishedJobs & AllFinishedJobs & LaterEvents;
  /** Opens what was sealed so. */
  failedJobs(seal: ContentSeal): FailedJobs;
  /** Erases recipients by this index. */
  erasure(recipients: RecipientIndex): HistoryErasure;
  readonly removal: TenantHistory;
  readonly metrics: ClickHouseEventMetrics;
  readonly mailHistory: ClickHouseMailCounts;
  readonly operatorSums: OperatorSums;
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
  readonly telemetry: Telemetry;
}

const listNames = ({ channels }: Pick<EventStoreOptions, "channels">) => channels.map(({ name }) => name);

/** The main process's access to the server in its data folder. */
export interface EmbeddedEventStore {
  /** For statements of analysts; null: they may not read it. */
  readonly analysts: ClickHouseAddress | null;
  readonly hold: HoldEvents;
}

/** The event store's database. */
export async function openEventStore(
  options: EventStoreOptions,
  schema: Schema,
): Promise<OpenEventStore & { readonly address: ClickHouseAddress; readonly embedded: EmbeddedEventStore | null }> {
  const { config } = options;
  if (config.clickhouseUrl === null) return openEmbedded(options);
  const address = serverAddress(config);
  const clients = connectClickHouse(address);
  try {
    if (schema === "migrate") await bringUp(clients, options);
  } catch (error) {
    await clients.close();
    throw error;
  }
  return { ...eventStoreOver(clients, options), address, embedded: null };
}

async function openEmbedded(options: EventStoreOptions) {
  const { config, clock, telemetry } = options;
  const folder = join(config.home, "clickhouse");
  const analysed = config.clickhouseHttpPort === 0 ? null : config.clickhouseDatabase;
  return await openingStore({ store: EVENT_STORE, folder, lastWords: () => emptyDefinition(folder) }, async () => {
    const isWhole = await beginFolder(folder);
    const child = await startClickHouseChild({ folder, analysed, clock, telemetry });
    const clients = connectClickHouse(child.address);
    const close = async () => {
      // Before the server, which waits for its connections.
      await clients.close();
      await child.stop();
    };
    try {
      await bringUp(clients, options);
      await isWhole();
    } catch (error) {
      await close();
      throw error;
    }
    const gate = new WriteGate();
    const { address, analysts } = child;
    const hold = holdEvents(gate, clients, clock);
    return { ...eventStoreOver(clients, { ...options, gate }), address, embedded: { analysts, hold }, close };
  });
}

/** Also waits for inserts that a writer has given up on, which the server may still run. */
function holdEvents(gate: WriteGate, { reader, exporter }: ClickHouseServer, clock: Clock): HoldEvents {
  const reading = new ClickHouse({ client: reader, clock, timeoutMs: STATEMENT_TIMEOUT_MS });
  const isInserting = async () => {
    const [row] = await reading.rows("SELECT count() FROM system.processes WHERE query_kind = 'Insert'");
    return Number(row?.[0]) > 0;
  };
  return (work) =>
    gate.hold(async () => {
      while (await isInserting()) await sleep(clock, INSERTS_POLL_MS);
      return await work(exporter);
    });
}

/** A table's or database's definition that a full disk has left empty; the engine then refuses to open any table. */
function emptyDefinition(folder: string): string | null {
  const definitions = new Bun.Glob("{metadata,store}/**/*.sql").scanSync({ cwd: folder, absolute: true });
  const empty = Array.from(definitions).find((file) => Bun.file(file).size === 0);
  return empty === undefined ? null : `${empty} is empty`;
}

async function bringUp({ writer: client }: ClickHouseServer, options: EventStoreOptions): Promise<void> {
  const { config, clock } = options;
  const migrating = new ClickHouse({ client, clock, timeoutMs: MIGRATION_TIMEOUT_MS });
  await migrateEventStore(migrating, toTarget(config), listNames(options));
  await settleForPowerCuts(migrating, toTarget(config));
}

/** The event store's database, in a child whose main process says where it is. */
export function joinEventStore(
  options: Pick<EventStoreOptions, "config" | "channels" | "clock">,
  address: ClickHouseAddress,
): OpenEventStore {
  return eventStoreOver(connectClickHouse(address), options);
}

const toTarget = (config: Config) => ({ database: config.clickhouseDatabase, cluster: config.clickhouseCluster });

function eventStoreOver(
  clients: ClickHouseServer,
  options: Pick<EventStoreOptions, "config" | "channels" | "clock"> & { readonly gate?: WriteGate },
): OpenEventStore {
  const { config, clock, gate } = options;
  const target = toTarget(config);
  const over = (client: ClickHouseServer["writer"], timeoutMs = STATEMENT_TIMEOUT_MS) =>
    new ClickHouse({ client, clock, timeoutMs });
  const writing = new ClickHouse({
    client: clients.writer,
    clock,
    timeoutMs: STATEMENT_TIMEOUT_MS,
    ...(gate !== undefined && { gate }),
  });
  const reading = over(clients.reader);
  const exporting = over(clients.exporter, EXPORT_TIMEOUT_MS);
  const retention = { eventsMonths: config.eventsKeptMonths, jobsDays: config.jobsKeptDays };
  // A server on this machine has had no power cut since the machine started.
  const upMs = () => (config.clickhouseUrl === null ? Promise.resolve(uptime() * 1000) : serverUpMs(reading, target));
  const writer = (ports: FailedPayloadPorts | null) =>
    new ClickHouseEventWriter(writing, target, clock, { ports, upMs });
  return {
    writer,
    // Recipients of a history that never happened are not looked for: their domains are enough.
    demo: { reading, writer: writer(null), target },
    reader: new ClickHouseEventReader(reading, target, clock),
    probe: new EventStoreProbe(over(clients.prober), target),
    feed: new ClickHouseEventFeed(reading, target),
    finishedJobs: (recipients) => new ClickHouseFinishedJobs(reading, target, recipients),
    erasure: (recipients) => new RecipientErasure({ reading, writing, target, recipients, clock }),
    removal: new TenantRemoval({ reading, writing }, target),
    failedJobs: (seal) => new ClickHouseFailedJobs({ clickhouse: reading, target, seal, clock }),
    metrics: new ClickHouseEventMetrics(reading, target),
    mailHistory: new ClickHouseMailCounts(reading, target),
    operatorSums: new ClickHouseOperatorSums(reading, target),
    exports: new ClickHouseEventExport(exporting, target),
    health: () => eventStoreHealth(reading, target),
    newestEventMs: () => newestEventMs(reading, target),
    expired: (ports) =>
      new ExpiredHistory({
        clickhouse: { reading, writing },
        target,
        retention,
        clock,
        random: systemRandom,
        ...ports,
      }),
    identity: () => eventStoreIdentity(reading, target, listNames(options)),
    belonging: new EventStoreBelonging(reading, writing, target),
    close: () => clients.close(),
  };
}

function serverAddress({ clickhouseUrl, clickhouseUser, clickhousePassword }: Config): ClickHouseAddress {
  return { url: clickhouseUrl ?? "", user: clickhouseUser, password: clickhousePassword ?? "" };
}
