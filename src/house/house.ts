import { Dispatcher } from "../actors/dispatcher.ts";
import type { ApiPorts } from "../api/api-ports.ts";
import { createServer } from "../api/server.ts";
import type { Config } from "../config.ts";
import type { Channel } from "../core/channel.ts";
import { UnavailableError } from "../core/errors.ts";
import { httpOrigin } from "../core/http-origin.ts";
import { JobIds } from "../core/ids.ts";
import type { LedgerWriter } from "../core/ledger.ts";
import type { DeliveryReport } from "../core/report.ts";
import type { TenantDirectory } from "../core/tenant.ts";
import { DASHBOARD_PAGES } from "../dashboard/dashboard-pages.ts";
import { FolderLock } from "../embedded/folder-lock.ts";
import { DeliveryReports } from "../intake/delivery-reports.ts";
import { Engagements } from "../intake/engagements.ts";
import { MailReports } from "../intake/mail-reports.ts";
import { PassSweep, type PassSweepPorts } from "../intake/pass-sweep.ts";
import { SuppressionList } from "../intake/suppression-list.ts";
import { RedisJournal } from "../journal/redis-journal.ts";
import { Recorder } from "../ledger/recorder.ts";
import { LinkTokens } from "../links/link-tokens.ts";
import { MailLog } from "../maillog/mail-log.ts";
import { type OpenRegistry, openRegistry } from "../registry/open-registry.ts";
import { Vault } from "../registry/vault.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { ProcessTelemetry } from "../telemetry/process-telemetry.ts";
import { createDemoTenant } from "./demo-tenant.ts";
import { openDomains } from "./open-domains.ts";
import { openPassKit, type PassKit } from "./open-pass-kit.ts";
import { openPayloads } from "./open-payloads.ts";
import { type OpenWallet, openWallet } from "./open-wallet.ts";
import { openWhatsappWebhook } from "./open-whatsapp-webhook.ts";
import { startProviders } from "./providers.ts";
import { Shutdown } from "./shutdown.ts";
import { hasEmbeddedStore, openDatabase, openLedger, openRedis, openToAnalysts, usesLedger } from "./stores.ts";

export interface HouseOptions {
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
  readonly version: string;
}

export interface House {
  /** Where the API listens, or null where this process does not play that role. */
  readonly url: string | null;
  /** Where analysts' tools find the ledger that is in this process, or null where they do not. */
  readonly clickhouseUrl: string | null;
  /** The demo tenant's key, on the first start of the embedded default only. */
  readonly demoKey: string | null;
  /** Rejects when a part is gone for good, and the process should end. */
  readonly broken: Promise<never>;
  /** Finishes what is under way and stops, within ten seconds. Safe to repeat. */
  stop(): Promise<void>;
}

/**
 * Builds the house and starts the roles that the configuration names. What has been started is stopped again when a
 * later part does not start.
 */
export async function startHouse(options: HouseOptions): Promise<House> {
  const shutdown = new Shutdown(options.telemetry);
  try {
    return await build(options, shutdown);
  } catch (error) {
    await shutdown.run();
    throw error;
  }
}

async function build(options: HouseOptions, shutdown: Shutdown): Promise<House> {
  const { config, telemetry, version } = options;
  const clock = systemClock;
  const random = systemRandom;
  const owner = crypto.randomUUID();
  const { promise: broken, reject: onBroken } = Promise.withResolvers<never>();
  broken.catch(() => {});

  const stores = await openStores(options, shutdown, (reason) => onBroken(new Error(reason)));
  const { journal } = stores;
  const ledger = stores.ledger ?? NO_LEDGER;
  const registry = await startRegistry(options, shutdown, stores);
  const { directory } = registry;

  const suppressions = new SuppressionList({ registry: registry.registry, index: journal, journal });
  const reports = new DeliveryReports({ journal: suppressions, directory, ledger: ledger.reader, clock, telemetry });
  shutdown.add("history", "reports", () => reports.stop());

  startRecorder(options, shutdown, { journal, ledger: ledger.writer, owner });
  const clickhouseUrl = startAnalysts(options, shutdown);
  startPassSweep(options, shutdown, { passes: registry.passes, directory, journal, ledger: ledger.reader });
  const payloads = await openPayloads(options, shutdown, { registry, journal, ledger: ledger.reader });
  startMailLog(options, shutdown, reports);
  const providers = await startProviders({ config, telemetry, reports, registry }, shutdown);
  const links = new LinkTokens(config.masterKeys);
  const demo = config.databaseUrl === null ? await createDemoTenant(registry.registry) : null;
  const jobIds = new JobIds(clock, random);
  let publicUrl = config.publicUrl ?? httpOrigin(config.host, config.port);
  const wallet = openWallet({ ...providers, config, registry, telemetry, publicUrl: () => publicUrl });
  const url = await startApi(config, shutdown, {
    journal,
    payloads: payloads.store,
    directory,
    registry: registry.registry,
    domains: openDomains(config, registry.domains, directory),
    ledger: ledger.reader,
    exports: ledger.exports,
    clock,
    random,
    jobIds,
    telemetry,
    passKit: openPassKit({ config, registry, jobIds, telemetry }),
    wallet,
    metricsText: () => metricsText(telemetry, wallet),
    probes: [journal.probe, registry.probe, ledger.reader],
    sandbox: providers.mailbox,
    platform: providers.platform,
    whatsapp: openWhatsappWebhook({ config, journal, directory, ledger: ledger.reader, telemetry }, shutdown),
    links,
    suppressions,
    engagements: new Engagements({ reports, telemetry }),
    mailReports: new MailReports({ reports, links, clock, telemetry }),
    dashboard: DASHBOARD_PAGES,
    operatorToken: config.operatorToken,
    ...(config.publicUrl === null ? {} : { publicUrl: config.publicUrl }),
    version,
  });
  // The links in messages lead to the API, so it has to be known where that listens.
  publicUrl = config.publicUrl ?? url ?? publicUrl;
  const around = { bundles: wallet.bundles, publicUrl, apiUrl: url ?? publicUrl, links, registry };
  const channels = providers.openChannels(around).map((channel) => payloads.over(channel));
  if (channels.length > 0) startDispatcher(options, shutdown, { journal, directory, suppressions, owner, channels });
  return { url, clickhouseUrl, demoKey: demo?.apiKey ?? null, broken, stop: () => shutdown.run() };
}

/** What goes on with the time is measured first. */
function metricsText(telemetry: ProcessTelemetry, wallet: OpenWallet): Promise<string> {
  wallet.measure();
  return telemetry.metricsText();
}

async function startRegistry(
  { config, telemetry }: HouseOptions,
  shutdown: Shutdown,
  { database: { db }, journal }: Pick<Awaited<ReturnType<typeof openStores>>, "database" | "journal">,
): Promise<OpenRegistry> {
  const vault = new Vault(config.masterKeys, systemRandom);
  const common = { clock: systemClock, random: systemRandom, telemetry };
  const registry = await openRegistry({ ...common, db, shards: config.shards, vault, feed: journal });
  registry.start();
  shutdown.add("clients", "registry", () => registry.stop());
  return registry;
}

function startRecorder(
  { config, telemetry }: HouseOptions,
  shutdown: Shutdown,
  ports: { readonly journal: RedisJournal; readonly ledger: LedgerWriter; readonly owner: string },
): void {
  if (!config.roles.includes("recorder")) return;
  const common = { clock: systemClock, random: systemRandom, telemetry, shards: config.shards };
  const recorder = new Recorder({ ...common, ...ports });
  recorder.start();
  shutdown.add("history", "recorder", () => recorder.stop());
}

/** Answers where analysts' tools find the ledger of this process, or null where they do not. */
function startAnalysts({ config, telemetry }: HouseOptions, shutdown: Shutdown): string | null {
  const analysts = openToAnalysts(config, telemetry);
  if (analysts === null) return null;
  shutdown.add("clients", "clickhouse http", () => analysts.stop());
  return analysts.url;
}

/** Answers where the API listens, or null where this process does not play that role. */
async function startApi(
  { roles, host, port }: Config,
  shutdown: Shutdown,
  ports: Omit<ApiPorts, "whenDraining"> & { readonly passKit: PassKit },
): Promise<string | null> {
  if (!roles.includes("api")) return null;
  const draining = new AbortController();
  const server = createServer({ ...ports, whenDraining: draining.signal });
  shutdown.add("work", "api", async () => {
    const drainedFromMs = ports.clock.monotonicMs();
    draining.abort();
    await server.stop();
    // Whatever the last requests made due.
    await ports.passKit.stop(drainedFromMs);
  });
  return (await server.listen({ host, port })).url;
}

/** In processes that can read the ledger, which tells a job that is over from one that never was. */
function startPassSweep(
  { config, telemetry }: HouseOptions,
  shutdown: Shutdown,
  ports: Omit<PassSweepPorts, "clock" | "telemetry">,
): void {
  if (!config.roles.includes("api")) return;
  const sweep = new PassSweep({ ...ports, clock: systemClock, telemetry });
  sweep.start();
  shutdown.add("history", "pass sweep", () => sweep.stop());
}

function startMailLog({ config, telemetry }: HouseOptions, shutdown: Shutdown, reports: DeliveryReports): void {
  if (!config.roles.includes("maillog") || config.mailLog === null) return;
  const onReport = (report: DeliveryReport) => reports.take(report);
  const mailLog = new MailLog({ path: config.mailLog, home: config.home, onReport, clock: systemClock, telemetry });
  mailLog.start();
  // Before the reports: those that they give up must not count as taken.
  shutdown.add("work", "mail log", () => mailLog.stop());
}

interface Delivering {
  readonly journal: RedisJournal;
  readonly directory: TenantDirectory;
  readonly suppressions: SuppressionList;
  readonly owner: string;
  readonly channels: readonly Channel[];
}

function startDispatcher(
  { config, telemetry }: HouseOptions,
  shutdown: Shutdown,
  { journal, directory, suppressions, owner, channels }: Delivering,
): void {
  const dispatcher = new Dispatcher({
    journal,
    directory,
    channels,
    suppressions,
    owner,
    shards: config.shards,
    clock: systemClock,
    random: systemRandom,
    telemetry,
  });
  dispatcher.start();
  shutdown.add("work", "dispatcher", () => dispatcher.stop());
}

/** For a process that only delivers, without a ClickHouse server to ask. */
const NO_LEDGER = {
  writer: { write: () => Promise.reject(new UnavailableError("this process has no ledger")) },
  reader: {
    name: "clickhouse",
    check: () => Promise.resolve(),
    page: () => Promise.reject(new UnavailableError("this process has no ledger")),
    job: () => Promise.resolve(null),
  },
  exports: { open: () => Promise.reject(new UnavailableError("this process has no ledger")) },
};

async function openStores(options: HouseOptions, shutdown: Shutdown, onBroken: (reason: string) => void) {
  const { config, telemetry } = options;
  const clock = systemClock;
  if (hasEmbeddedStore(config)) {
    const lock = FolderLock.acquire(config.home);
    shutdown.add("folder", "data folder", () => lock.release());
  }
  // Side by side: each takes a good part of a second. All are waited for, so that those that opened are closed again.
  const [redis, database, ledger] = await Promise.allSettled([
    shutdown.keep("redis", openRedis({ config, clock, telemetry }, onBroken)),
    shutdown.keep("database", openDatabase(config, "leave")),
    usesLedger(config) ? shutdown.keep("ledger", openLedger(config, clock, "leave")) : null,
  ]);
  if (redis.status === "rejected") throw redis.reason;
  if (database.status === "rejected") throw database.reason;
  if (ledger.status === "rejected") throw ledger.reason;

  const journal = new RedisJournal({ address: redis.value.address, clock, random: systemRandom, telemetry });
  shutdown.add("clients", "journal", () => journal.stop());
  await journal.start();
  // Our lock on the folder says that whoever held a lease in this Redis is dead.
  if (config.redis === null) await journal.forgetOwners(config.shards);
  return { journal, database: database.value, ledger: ledger.value };
}
