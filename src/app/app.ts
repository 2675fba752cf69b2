import { hostname } from "node:os";
import { LinkTokens } from "../channels/email/links/link-tokens.ts";
import { MailReports } from "../channels/email/reports/mail-reports.ts";
import type { Config } from "../config/config.ts";
import type { Channel } from "../domain/channels/channel.ts";
import { JobIds } from "../domain/ids.ts";
import type { EventWriter } from "../domain/jobs/event-store.ts";
import type { SandboxInbox } from "../domain/jobs/report.ts";
import type { TenantDirectory } from "../domain/tenants/tenant.ts";
import { httpOrigin } from "../domain/texts/host.ts";
import type { Tracer } from "../domain/tracing.ts";
import { QueuedBatches } from "../engine/batches/queued-batches.ts";
import { Dispatcher } from "../engine/dispatch/dispatcher.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import { notSentBefore } from "../engine/queue/restored-queue.ts";
import { Recorder } from "../engine/recorder/recorder.ts";
import { DeliveryReports } from "../engine/reports/delivery-reports.ts";
import { Engagements } from "../engine/reports/engagements.ts";
import { Retries } from "../engine/retries/retries.ts";
import { JobScheduler } from "../engine/schedule/job-schedule.ts";
import { eventStoreInTurn } from "../events/history-in-turn.ts";
import { eventLimits } from "../events/limits.ts";
import { CallTurns } from "../http/call-turns.ts";
import { OperatorSessions } from "../http/operator-sessions.ts";
import { LoopDelay } from "../runtime/loop-delay.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import { Vault } from "../storage/vault.ts";
import { SuppressionList } from "../tenants/suppression-list.ts";
import type { WebhookSender } from "../webhooks/webhook-sender.ts";
import { startAnalysts } from "./analysts.ts";
import { type AppChannel, createRetryCharges } from "./app-channel.ts";
import { AwayParts } from "./away-parts.ts";
import { backupTask } from "./backup-task.ts";
import { channelOpener } from "./channel-opener.ts";
import { createTask } from "./command-line-operator.ts";
import { serveControl } from "./control-socket.ts";
import { countFromZero } from "./count-from-zero.ts";
import { demoDataTask } from "./demo-data.ts";
import { type DemoTenant, NO_DEMO, openDemoTenant } from "./demo-tenant.ts";
import { doctorTask } from "./doctor.ts";
import { openDomains, readSenderDomain } from "./email.ts";
import { eraseTask } from "./erase.ts";
import { jobOwners } from "./job-owners.ts";
import { freePorts, startListener, startReadiness } from "./listener.ts";
import { startMailLog } from "./mail-log.ts";
import { MainProcess } from "./main-process.ts";
import { measured } from "./measured.ts";
import { NO_EVENT_STORE, NO_HISTORY } from "./no-event-store.ts";
import { openOverview } from "./open-overview.ts";
import { type OpenRegistry, openRegistry } from "./open-registry.ts";
import type { MainStores, Stores } from "./open-stores.ts";
import { ALONE, answersAt, deliveryAt, listenerAt, type Place, peersAt, storesAt } from "./place.ts";
import { startProviders } from "./providers.ts";
import { readinessParts } from "./readiness-parts.ts";
import { RestoredJobs } from "./restored-jobs.ts";
import { rotateKeysTask } from "./rotate-keys.ts";
import { Shutdown } from "./shutdown.ts";
import { StatusReport } from "./status-report.ts";
import { openPayloads, type Payloads } from "./stored-payloads.ts";
import { hasEmbeddedStore } from "./stores.ts";
import { startSubmission } from "./submission.ts";
import { startOldSweeps, startPassSweep, startTenantRemovals, startUsage } from "./sweeps.ts";
import { startTracing } from "./tracing.ts";
import { untilAnswered } from "./until-answered.ts";
import { openPassKit, openWallet } from "./wallet.ts";
import { openNewsDesk, openWebhooks, webhookSender } from "./webhooks.ts";
import { openWhatsappWebhook } from "./whatsapp.ts";

export interface AppOptions {
  readonly channels: readonly AppChannel[];
  /** The configuration of the whole start; in a child, with its own roles. */
  readonly config: Config;
  readonly telemetry: ProcessTelemetry;
  readonly version: string;
  /** Which process of a start this is; a lone process if absent. */
  readonly place?: Place;
}

export interface App {
  /** Address of the API, or null if this process does not play that role. */
  readonly url: string | null;
  /** Address of health, readiness and metrics: the API's address if this process serves the API. */
  readonly serviceUrl: string;
  /** Address of the metrics if they have their own. */
  readonly metricsUrl: string | null;
  /** Address of operators and monitoring if they have their own. */
  readonly adminUrl: string | null;
  /** Host and port at which mail is taken by SMTP, or null if this process does not play that role. */
  readonly smtpAddress: string | null;
  /** Address at which analysts' tools reach the event store in this process, or null if it is not opened to them. */
  readonly clickhouseUrl: string | null;
  /** Process ids of the children, by name. */
  readonly children: ReadonlyMap<string, number>;
  readonly demo: DemoTenant;
  /** Rejects when a part has failed for good and the process should end. */
  readonly broken: Promise<never>;
  /**
   * Lets the work in flight end, for six seconds at most, and stops within ten. For the first `graceMs` of them, requests are
   * still taken while `/ready` says `stopping`. Safe to call twice.
   */
  stop(graceMs: number): Promise<void>;
}

/** Builds the app and starts the configured roles. If a later part fails to start, the parts already started are stopped. */
export async function startApp(options: AppOptions): Promise<App> {
  countFromZero(options.telemetry, options.channels);
  const shutdown = new Shutdown(options.telemetry);
  try {
    return await build(options, shutdown);
  } catch (error) {
    await shutdown.run(0);
    throw error;
  }
}

async function build(whole: AppOptions, shutdown: Shutdown): Promise<App> {
  const { telemetry, place = ALONE } = whole;
  const main = place.kind === "main" ? await MainProcess.start({ ...whole, plan: place.plan }, shutdown) : null;
  const peers = peersAt(place, main);
  const config = place.kind === "main" ? { ...whole.config, roles: place.plan.mainRoles } : whole.config;
  const options = { ...whole, config };
  const machine = createMachine(telemetry);
  const { promise: broken, reject: onBroken } = Promise.withResolvers<never>();
  broken.catch(() => {});

  const tracing = startTracing(options, shutdown);
  const base = await openBase(options, shutdown, { whole, onBroken: (reason) => onBroken(new Error(reason)) });
  const { stores, queue, registry, reports, payloads, away } = base;
  const listens = listenerAt(place, config.roles);
  const ports = main !== null && listens.main === "elsewhere" ? await freePorts(config) : {};
  const served = { ...config, ...ports };
  let publicUrl = config.publicUrl ?? httpOrigin(config.host, served.port);
  const delivery = { ...deliveryAt(place, whole.config, peers), publicUrl: () => publicUrl };
  const providers = await startProviders({ ...options, reports, registry, away, ...delivery }, shutdown);
  const links = new LinkTokens(config.masterKeys);
  const wallet = openWallet({ ...providers, config, registry, telemetry }, shutdown);
  const passKit = openPassKit({ config, registry, bundles: wallet.bundles, news: base.news, ...machine });
  const parts = readinessParts({ place, stores, registry, away, shards: config.shards });
  const readiness = startReadiness(shutdown, { ...parts, ...machine });
  base.late.sandbox = providers.inbox;
  const metrics = measured({ ...options, place, queue, ...registry }, wallet);
  const answers = answersAt(place, main, { ...metrics, readiness, log: passKit.log, inbox: providers.inbox });
  await main?.begin({ stores, config: { ...whole.config, ...providers.urls, ...ports } });
  const given = {
    ...queueing({ queue, ...machine }),
    ...payloads.served,
    ...operating(registry),
    ...(await openDomains(config, registry)),
    ...createHistory(base, whole),
    ...machine,
    ...tracing,
    ...answers,
    passKit: { ...passKit, log: { take: passKit.log.take.bind(passKit.log), latest: answers.complaints } },
    wallet,
    platform: providers.platform,
    whatsapp: openWhatsappWebhook({ ...base, ...providers, config, telemetry }, shutdown),
    links,
    ...base.api,
    overview: openOverview(options, { ...base, ...answers, wallet }),
    usage: startUsage(registry, telemetry, shutdown),
    engagements: new Engagements({ reports, telemetry }),
    mailReports: new MailReports({ reports, links, owners: jobOwners(base, whole.config.shards), ...machine }),
    processes: peers.api,
    ...configured(config, whole.version),
  };
  const listener = await startListener({ config: served, place: listens, channels: whole.channels }, shutdown, given);
  const url = whole.config.roles.includes("api") ? listener.url : null;
  // Links in messages point to the API, so its address must be known first.
  publicUrl = config.publicUrl ?? url ?? publicUrl;
  providers.callBack(url ?? publicUrl);
  const open = channelOpener(whole, { providers, wallet, mailed: base.mailed, publicUrl, links, registry });
  await startDelivering(options, shutdown, { ...base, ...tracing, open });
  const smtpAddress = await startSubmission(config, shutdown, given);
  // Last: only the start that creates it shows its key, so one that fails must leave that to the next.
  const demo = place.kind === "child" ? NO_DEMO : await openDemoTenant(config, registry.registry, telemetry);
  const urls = { ...listener, smtpAddress, url, serviceUrl: listener.url, clickhouseUrl: base.clickhouseUrl };
  return { ...urls, children: main?.pids ?? NO_CHILDREN, demo, broken, stop: (graceMs) => shutdown.run(graceMs) };
}

const NO_CHILDREN: ReadonlyMap<string, number> = new Map();

/** Parts that commands use and that exist only after the stores. */
interface Late {
  sandbox: SandboxInbox | null;
}

/** Opens the stores and starts what depends on them alone. */
async function openBase(
  options: AppOptions,
  shutdown: Shutdown,
  { whole, onBroken }: { readonly whole: AppOptions; onBroken(reason: string): void },
) {
  const { telemetry, place = ALONE } = options;
  const owner = place.kind === "child" ? place.order.owner : crypto.randomUUID();
  const stores = await storesAt(place, whole, { shutdown, onBroken });
  const late: Late = { sandbox: null };
  const { queue } = stores;
  const eventStore = stores.eventStore ?? NO_EVENT_STORE;
  const registry = await startRegistry(options, shutdown, stores);
  const { directory } = registry;
  if (place.kind !== "child" && hasEmbeddedStore(whole.config))
    startControl(whole, shutdown, { stores, registry, late });

  const listed = { registry: registry.registry, recipients: registry.recipients };
  const suppressions = new SuppressionList({ ...listed, index: queue, queue });
  const common = { directory, eventStore: eventStore.reader, clock: systemClock, random: systemRandom, telemetry };
  const reports = new DeliveryReports({ queue: suppressions, ...common });
  shutdown.add("history", "reports", () => reports.stop());

  const joins = place.kind === "child";
  const clickhouseUrl = joins ? null : await startAnalysts(whole, shutdown, stores.analysts);
  // Only in a process that can read the event store, which distinguishes a finished job from one that never existed.
  const sweeps = !joins && whole.config.roles.includes("api");
  const swept = { directory, queue, eventStore: eventStore.reader };
  if (sweeps) {
    startPassSweep(options, shutdown, { passes: registry.passes, ...swept });
    if (stores.eventStore !== null)
      startOldSweeps(options, shutdown, { registry, queue, eventStore: stores.eventStore });
    const left = { registry: registry.registry, devices: registry.devices, queue, history: eventStore.removal };
    startTenantRemovals(options, shutdown, left);
  }
  const failedJobs = eventStore.failedJobs(registry.contents);
  const payloads = await openPayloads(options, shutdown, { registry, failedJobs, sweeps, joins, ...swept });
  const { recipients, contents: seal } = registry;
  const writer = eventStore.writer({ recipients, seal, payloads: payloads.store });
  const status = startStatus(options, shutdown, queue);
  const hooks = { config: options.config, registry, eventStore, telemetry };
  const webhooks = () => webhookSender(hooks, queue);
  startRecorder(options, shutdown, { queue, eventStore: writer, owner, status, webhooks });
  const away = new AwayParts(systemClock);
  startMailLog(options, shutdown, { reports, away, queue, eventStore, registry });
  return {
    late,
    owner,
    stores,
    queue,
    eventStore,
    registry,
    directory,
    suppressions,
    reports,
    payloads,
    away,
    status,
    clickhouseUrl,
    mailed: { suppressions: queue, bounces: suppressions, contents: payloads.served.contents },
    news: openNewsDesk(hooks, queue),
    api: { suppressions, purging: queue, webhooks: openWebhooks(hooks), watched: status },
  };
}

/** How the API reads what was recorded. */
function createHistory(
  { eventStore, registry, queue, payloads }: Awaited<ReturnType<typeof openBase>>,
  { channels, telemetry }: Pick<AppOptions, "channels" | "telemetry">,
) {
  const { reader, metrics: eventMetrics, exports, finishedJobs, failedJobs, erasure } = eventStore;
  const { recipients } = registry;
  const failed = failedJobs(registry.contents);
  const charges = createRetryCharges(channels, registry);
  const retries = new Retries({
    queue,
    eventStore: {
      job: (tenantId, jobId) => reader.job(tenantId, jobId),
      failedJobs: (tenantId, jobIds) => failed.failedJobs(tenantId, jobIds),
    },
    payloads: payloads.store,
    charges,
    clock: systemClock,
  });
  const common = { queue, payloads: payloads.store, charges, clock: systemClock, telemetry };
  const reads = new CallTurns(eventLimits.historyReads, systemClock);
  const schedule = new JobScheduler({ ...common, eventStore: eventStoreInTurn(reader, reads) });
  const found = finishedJobs(recipients);
  const history = erasure(recipients);
  const { questions, statuses: processStatuses } = queue;
  const asked = {
    eventStore: reader,
    eventMetrics,
    exports,
    finishedJobs: found,
    history,
    recipients,
    questions,
    processStatuses,
  };
  return { ...asked, reads, retries, schedule };
}

function createMachine(telemetry: ProcessTelemetry) {
  return { clock: systemClock, random: systemRandom, jobIds: new JobIds(systemClock, systemRandom), telemetry };
}

/** How requests reach the queue: one by one, and in batches. */
function queueing(ports: { readonly queue: RedisQueue; readonly jobIds: JobIds }) {
  return { queue: ports.queue, batches: new QueuedBatches(ports) };
}

/** Returns the operators' dependencies. */
function operating({ registry, directory, operators, operatorAccounts, audit }: OpenRegistry) {
  return { registry, directory, operators, operatorAccounts, audit };
}

/** Configured values that the API shows. */
function configured({ operatorToken, masterKeys, publicUrl, logJobs, logLevel, shards }: Config, version: string) {
  const requestLog = { logShare: logJobs, logsRequests: logLevel === "debug" };
  const sessions = new OperatorSessions(masterKeys);
  return { operatorToken, sessions, version, shards, requestLog, ...(publicUrl === null ? {} : { publicUrl }) };
}

async function startRegistry(
  { channels, config, telemetry }: AppOptions,
  shutdown: Shutdown,
  { database: { db, onSilence }, queue }: Pick<Stores, "database" | "queue">,
): Promise<OpenRegistry> {
  const vault = new Vault(config.masterKeys, systemRandom);
  const { shards } = config;
  const common = { clock: systemClock, random: systemRandom, telemetry };
  const senderDomain = readSenderDomain(config);
  const options = { ...common, channels, db, onSilence, shards, vault, feed: queue, senderDomain };
  const registry = await untilAnswered(systemClock, () => openRegistry(options));
  return shutdown.start("clients", "registry", registry);
}

function startRecorder(
  { config, telemetry }: AppOptions,
  shutdown: Shutdown,
  ports: {
    readonly queue: RedisQueue;
    readonly eventStore: EventWriter;
    readonly owner: string;
    readonly status: StatusReport;
    readonly webhooks: () => WebhookSender;
  },
): void {
  if (!config.roles.includes("recorder")) return;
  const common = { clock: systemClock, random: systemRandom, telemetry, shards: config.shards };
  const sender = ports.webhooks();
  const recorder = new Recorder({ ...common, ...ports, follower: sender });
  // It stops after the recorder, whose end hands the shards over to other processes' senders.
  shutdown.start("clients", "webhooks", sender);
  shutdown.start("history", "recorder", recorder);
  ports.status.records(recorder);
}

/** Lets commands reach the engines that this process holds. */
function startControl(
  { config, telemetry }: AppOptions,
  shutdown: Shutdown,
  { stores, registry, late }: { readonly stores: MainStores; readonly registry: OpenRegistry; readonly late: Late },
): void {
  const { redis, eventStore, database, queue } = stores;
  const tasks = {
    backup: backupTask(config, stores),
    "rotate-keys": rotateKeysTask(config, database.db),
    create: createTask(registry),
    doctor: doctorTask({ config, telemetry, redis, db: database.db, eventStore }),
    ...(eventStore !== null && {
      "demo-data": demoDataTask({ registry: registry.registry, eventStore }),
      erase: eraseTask({ registry, queue, eventStore, sandbox: () => late.sandbox }),
    }),
  };
  const control = serveControl(config.home, tasks, telemetry);
  shutdown.add("clients", "control", () => control.stop());
}

interface Delivering {
  readonly queue: RedisQueue;
  readonly registry: { readonly directory: TenantDirectory };
  readonly suppressions: SuppressionList;
  readonly owner: string;
  readonly payloads: Payloads;
  readonly away: AwayParts;
  readonly status: StatusReport;
  readonly stores: Pick<Stores, "redis" | "eventStore">;
  readonly tracer?: Tracer;
  open(): readonly Channel[];
}

async function startDelivering(
  { config, telemetry }: AppOptions,
  shutdown: Shutdown,
  { queue, registry: { directory }, suppressions, owner, payloads, away, status, stores, tracer, open }: Delivering,
): Promise<void> {
  if (!config.roles.includes("dispatcher")) return;
  const restored = new RestoredJobs(await notSentBefore({ address: stores.redis, clock: systemClock, telemetry }));
  const dispatcher = new Dispatcher({
    queue,
    directory,
    channels: open().map((channel) => restored.over(payloads.over(channel))),
    suppressions,
    histories: { queue, eventStore: stores.eventStore?.reader ?? NO_HISTORY },
    owner,
    shards: config.shards,
    clock: systemClock,
    random: systemRandom,
    telemetry,
    logShare: config.logJobs,
    ...(tracer !== undefined && { tracer }),
  });
  away.addRelays(dispatcher);
  status.delivers(dispatcher);
  queue.questions.onQuestion((shard, job) => dispatcher.whyWaits(shard, job));
  shutdown.start("work", "dispatcher", dispatcher);
}

/** Tells the other processes how this one is. */
function startStatus({ config, telemetry, place = ALONE }: AppOptions, shutdown: Shutdown, queue: RedisQueue) {
  const name = `${hostname()}/${place.kind === "child" ? place.order.name : "main"}:${process.pid}`;
  const own = { name, roles: config.roles, clock: systemClock, loop: new LoopDelay(), telemetry };
  return shutdown.start("clients", "status", new StatusReport({ statuses: queue.statuses, ...own }));
}
