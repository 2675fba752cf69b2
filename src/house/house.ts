import { Dispatcher } from "../actors/dispatcher.ts";
import type { Config } from "../config.ts";
import type { Channel } from "../core/channel.ts";
import { UnavailableError } from "../core/errors.ts";
import { httpOrigin } from "../core/http-origin.ts";
import { JobIds } from "../core/ids.ts";
import type { LedgerWriter } from "../core/ledger.ts";
import type { DeliveryReport, ReadinessProbe } from "../core/report.ts";
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
import { AwayParts } from "./away-parts.ts";
import { openDemoTenant } from "./demo-tenant.ts";
import { startListener, startReadiness } from "./listener.ts";
import { openDomains } from "./open-domains.ts";
import { openPassKit } from "./open-pass-kit.ts";
import { openPayloads } from "./open-payloads.ts";
import { type OpenWallet, openWallet } from "./open-wallet.ts";
import { openWhatsappWebhook } from "./open-whatsapp-webhook.ts";
import { startProviders } from "./providers.ts";
import { Shutdown } from "./shutdown.ts";
import { checkStart } from "./start-checks.ts";
import { hasEmbeddedStore, openDatabase, openLedger, openRedis, openToAnalysts, usesLedger } from "./stores.ts";

export interface HouseOptions {
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
  readonly version: string;
}

export interface House {
  /** Where the API listens, or null where this process does not play that role. */
  readonly url: string | null;
  /** Where health, readiness and metrics are: the same as the API, where this process has one. */
  readonly serviceUrl: string;
  /** Where metrics are that have an address of their own. */
  readonly metricsUrl: string | null;
  /** Where analysts' tools find the ledger that is in this process, or null where they do not. */
  readonly clickhouseUrl: string | null;
  /** The demo tenant's key, on the first start of the embedded default with the sandbox only. */
  readonly demoKey: string | null;
  /** Rejects when a part is gone for good, and the process should end. */
  readonly broken: Promise<never>;
  /**
   * Finishes what is under way and stops, within ten seconds. For the first `graceMs` of them requests are still taken
   * while `/ready` says `stopping`. Safe to repeat.
   */
  stop(graceMs: number): Promise<void>;
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
    await shutdown.run(0);
    throw error;
  }
}

async function build(options: HouseOptions, shutdown: Shutdown): Promise<House> {
  const { config, telemetry, version } = options;
  const [clock, random] = [systemClock, systemRandom];
  const machine = { clock, random, jobIds: new JobIds(clock, random), telemetry };
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
  const away = new AwayParts(clock);
  startMailLog(options, shutdown, { reports, away });
  const providers = await startProviders({ config, telemetry, reports, registry, away }, shutdown);
  const links = new LinkTokens(config.masterKeys);
  const demo = await openDemoTenant(config, registry.registry, telemetry);
  let publicUrl = config.publicUrl ?? httpOrigin(config.host, config.port);
  const wallet = openWallet({ ...providers, config, registry, telemetry, publicUrl: () => publicUrl });
  const needed = neededParts(stores, registry);
  const listener = await startListener(config, shutdown, {
    journal,
    payloads: payloads.store,
    directory,
    registry: registry.registry,
    domains: openDomains(config, registry.domains, directory),
    ledger: ledger.reader,
    exports: ledger.exports,
    ...machine,
    passKit: openPassKit({ config, registry, ...machine }),
    wallet,
    metricsText: () => metricsText(telemetry, wallet),
    readiness: startReadiness(shutdown, { needed, beside: () => away.list(), clock, telemetry }),
    sandbox: providers.mailbox,
    platform: providers.platform,
    whatsapp: openWhatsappWebhook({ ...providers, config, journal, directory, ledger, telemetry }, shutdown),
    links,
    suppressions,
    engagements: new Engagements({ reports, telemetry }),
    mailReports: new MailReports({ reports, links, clock, telemetry }),
    ...configured(config, version),
  });
  const url = config.roles.includes("api") ? listener.url : null;
  // The links in messages lead to the API, so it has to be known where that listens.
  publicUrl = config.publicUrl ?? url ?? publicUrl;
  const around = { bundles: wallet.bundles, publicUrl, apiUrl: url ?? publicUrl, links, registry };
  const channels = providers.openChannels(around).map((channel) => payloads.over(channel));
  const delivering = { journal, directory, suppressions, owner, channels, away };
  if (channels.length > 0) startDispatcher(options, shutdown, delivering);
  const demoKey = demo?.apiKey ?? null;
  const urls = { url, serviceUrl: listener.url, metricsUrl: listener.metricsUrl, clickhouseUrl };
  return { ...urls, demoKey, broken, stop: (graceMs) => shutdown.run(graceMs) };
}

/** What the API says as it was told. */
function configured({ operatorToken, publicUrl }: Config, version: string) {
  return { dashboard: DASHBOARD_PAGES, operatorToken, version, ...(publicUrl === null ? {} : { publicUrl }) };
}

/** Without these nothing is done here. Only a process that has an event store needs one. */
function neededParts({ journal, ledger }: Stores, registry: OpenRegistry): readonly ReadinessProbe[] {
  return [journal.probe, registry.probe, ...(ledger === null ? [] : [ledger.reader])];
}

/** Answers where analysts' tools find the ledger of this process, or null. */
function startAnalysts({ config, telemetry }: HouseOptions, shutdown: Shutdown): string | null {
  const analysts = openToAnalysts(config, telemetry);
  if (analysts !== null) shutdown.add("clients", "clickhouse http", () => analysts.stop());
  return analysts?.url ?? null;
}

/** What goes on with the time is measured first. */
function metricsText(telemetry: ProcessTelemetry, wallet: OpenWallet): Promise<string> {
  wallet.measure();
  return telemetry.metricsText();
}

async function startRegistry(
  { config, telemetry }: HouseOptions,
  shutdown: Shutdown,
  { database: { db }, journal }: Pick<Stores, "database" | "journal">,
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

function startMailLog(
  { config, telemetry }: HouseOptions,
  shutdown: Shutdown,
  { reports, away }: { readonly reports: DeliveryReports; readonly away: AwayParts },
): void {
  if (!config.roles.includes("maillog") || config.mailLog === null) return;
  const onReport = (report: DeliveryReport) => reports.take(report);
  const mailLog = new MailLog({ path: config.mailLog, home: config.home, onReport, clock: systemClock, telemetry });
  mailLog.start();
  away.addPart("mail log", () => mailLog.health());
  // Before the reports: those that they give up must not count as taken.
  shutdown.add("work", "mail log", () => mailLog.stop());
}

interface Delivering {
  readonly journal: RedisJournal;
  readonly directory: TenantDirectory;
  readonly suppressions: SuppressionList;
  readonly owner: string;
  readonly channels: readonly Channel[];
  readonly away: AwayParts;
}

function startDispatcher(
  { config, telemetry }: HouseOptions,
  shutdown: Shutdown,
  { journal, directory, suppressions, owner, channels, away }: Delivering,
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
  away.addRelays(dispatcher);
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

type Stores = Awaited<ReturnType<typeof openStores>>;

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

  const checks = await checkStart({
    config,
    clock,
    telemetry,
    redis: redis.value.address,
    db: database.value.db,
    eventStore: ledger.value,
    onMismatch: onBroken,
  });
  shutdown.add("work", "start checks", () => checks.stop());
  const { address } = redis.value;
  const { redisReplicasAcked: replicasAcked } = config;
  const journal = new RedisJournal({ address, clock, random: systemRandom, telemetry, replicasAcked });
  shutdown.add("clients", "journal", () => journal.stop());
  await journal.start();
  // Our lock on the folder says that whoever held a lease in this Redis is dead.
  if (config.redis === null) await journal.forgetOwners(config.shards);
  return { journal, database: database.value, ledger: ledger.value };
}
