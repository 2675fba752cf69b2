import { hostname } from "node:os";
import type { AppChannel } from "../channels/contract.ts";
import type { Config } from "../config/config.ts";
import { readSenderDomain } from "../config/mail-names.ts";
import { demoDataTask } from "../demo/demo-data.ts";
import { type DemoTenant, NO_DEMO, openDemoTenant } from "../demo/demo-tenant.ts";
import type { Channel } from "../domain/channels/channel.ts";
import { JobIds } from "../domain/ids.ts";
import type { EventWriter } from "../domain/jobs/event-store.ts";
import type { SandboxInbox } from "../domain/jobs/report.ts";
import type { TenantDirectory } from "../domain/tenants/tenant.ts";
import { httpOrigin } from "../domain/texts/host.ts";
import type { Tracer } from "../domain/tracing.ts";
import { QueuedBatches } from "../engine/batches/queued-batches.ts";
import { RestoredJobs } from "../engine/channels/restored-jobs.ts";
import { Dispatcher } from "../engine/dispatch/dispatcher.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import { notSentBefore } from "../engine/queue/restored-queue.ts";
import { Recorder } from "../engine/recorder/recorder.ts";
import { DeliveryReports } from "../engine/reports/delivery-reports.ts";
import { Engagements } from "../engine/reports/engagements.ts";
import { StatusReport } from "../engine/status-report.ts";
import { NO_EVENT_STORE, NO_HISTORY } from "../events/no-event-store.ts";
import { AwayParts } from "../http/away-parts.ts";
import { OperatorSessions } from "../http/operator-sessions.ts";
import { LoopDelay } from "../runtime/loop-delay.ts";
import { Shutdown } from "../runtime/shutdown.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { systemRandom } from "../runtime/system-random.ts";
import { countFromZero } from "../runtime/telemetry/count-from-zero.ts";
import type { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import { untilAnswered } from "../runtime/until-answered.ts";
import { Vault } from "../storage/vault.ts";
import { backupTask } from "../tasks/backup-task.ts";
import { createTask } from "../tasks/command-line-operator.ts";
import { serveControl } from "../tasks/control-socket.ts";
import { doctorTask } from "../tasks/doctor.ts";
import { eraseTask } from "../tasks/erase.ts";
import { rotateKeysTask } from "../tasks/rotate-keys.ts";
import { SuppressionList } from "../tenants/suppression-list.ts";
import type { TenantRemovalPorts } from "../tenants/tenant-removal.ts";
import type { WebhookSender } from "../webhooks/webhook-sender.ts";
import { startAnalysts } from "./analysts.ts";
import { freePorts, startListener, startReadiness } from "./listener.ts";
import { MainProcess } from "./main-process.ts";
import { measured } from "./measured.ts";
import { openChannels } from "./open-channels.ts";
import { jobOwners, openHistory } from "./open-history.ts";
import { openOverview } from "./open-overview.ts";
import { openPayloads, type Payloads } from "./open-payloads.ts";
import { type OpenRegistry, openRegistry } from "./open-registry.ts";
import type { MainStores, Stores } from "./open-stores.ts";
import { ALONE, answersAt, deliveryAt, listenerAt, type Place, peersAt, storesAt } from "./place.ts";
import { readinessParts } from "./readiness-parts.ts";
import { hasEmbeddedStore } from "./stores.ts";
import { startGovernor, startOldSweeps, startTenantRemovals, startUsage } from "./sweeps.ts";
import { startTracing } from "./tracing.ts";
import { openNewsDesk, openWebhooks, webhookSender } from "./webhooks.ts";

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
  const { promise: broken, reject: onBroken } = Promise.withResolvers<never>();
  broken.catch(() => {});

  const tracing = startTracing(options, shutdown);
  const base = await openBase(options, shutdown, { whole, onBroken: (reason) => onBroken(new Error(reason)) });
  const { stores, queue, registry, reports, payloads, away } = base;
  const listens = listenerAt(place, config.roles);
  const shared = main !== null && listens.main === "elsewhere" ? await freePorts(config) : {};
  const served = { ...config, ...shared };
  let publicUrl = config.publicUrl ?? httpOrigin(config.host, served.port);
  const machine = createMachine(telemetry);
  const delivery = { ...deliveryAt(place, whole.config, peers), publicUrl: () => publicUrl };
  const owners = jobOwners(base, whole.config.shards);
  const ports = { ...channelPorts(base), ...machine, ...delivery, config, owners };
  const channels = await openChannels(whole.channels, ports, shutdown);
  startRemovals(options, shutdown, { ...base, beside: channels });
  const parts = readinessParts({ place, stores, registry, away, shards: config.shards });
  const readiness = startReadiness(shutdown, { ...parts, ...machine });
  base.late.sandbox = channels.inbox;
  const metrics = measured({ ...options, place, queue, ...registry }, channels);
  const answers = answersAt(place, main, { ...metrics, ...channels, readiness });
  await main?.begin({ stores, config: { ...whole.config, ...channels.settings, ...shared } });
  const given = {
    ...channels.api,
    platform: channels.platform,
    drain: channels.drain,
    ...queueing({ queue, ...machine }),
    ...payloads.served,
    ...operating(registry),
    ...openHistory(base, whole),
    ...machine,
    ...tracing,
    ...answers,
    deviceLog: { latest: answers.complaints },
    ...base.api,
    overview: openOverview(options, { ...base, ...answers, expiring: channels.expiring }),
    usage: startUsage(registry, telemetry, shutdown),
    engagements: new Engagements({ reports, telemetry }),
    processes: peers.api,
    ...configured(config, whole.version),
  };
  const listener = await startListener({ config: served, place: listens, channels: whole.channels }, shutdown, given);
  const url = whole.config.roles.includes("api") ? listener.url : null;
  // Links in messages point to the API, so its address must be known first.
  publicUrl = config.publicUrl ?? url ?? publicUrl;
  channels.callBack(url ?? publicUrl);
  const open = () => channels.deliverers(payloads.served.contents);
  await startDelivering(options, shutdown, { ...base, ...tracing, open });
  const smtpAddress = await channels.listen(given);
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
  if (sweeps && stores.eventStore !== null) {
    startOldSweeps(options, shutdown, { registry, queue, eventStore: stores.eventStore });
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
    sweeps,
    status,
    clickhouseUrl,
    news: openNewsDesk(hooks, queue),
    api: { suppressions, purging: queue, webhooks: openWebhooks(hooks), watched: status },
  };
}

/** The dependencies of channels that come from the stores. */
function channelPorts({ queue, registry: stores, directory, ...base }: Awaited<ReturnType<typeof openBase>>) {
  const { suppressions, reports, news, away, sweeps } = base;
  const { registry } = stores;
  const eventStore = base.eventStore.reader;
  return { queue, registry, stores, directory, eventStore, suppressions, reports, news, away, sweeps };
}

function startRemovals(
  options: AppOptions,
  shutdown: Shutdown,
  base: Pick<Awaited<ReturnType<typeof openBase>>, "sweeps" | "registry" | "queue" | "eventStore"> &
    Pick<TenantRemovalPorts, "beside">,
): void {
  if (!base.sweeps) return;
  const { registry, queue, beside, eventStore } = base;
  startTenantRemovals(options, shutdown, { registry: registry.registry, queue, beside, history: eventStore.removal });
  startGovernor(options, shutdown, { registry, queue, eventStore });
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
function configured(
  { operatorToken, masterKeys, publicUrl, securityContacts, logJobs, logLevel, shards }: Config,
  version: string,
) {
  const requestLog = { logShare: logJobs, logsRequests: logLevel === "debug" };
  const sessions = new OperatorSessions(masterKeys);
  return {
    operatorToken,
    sessions,
    version,
    shards,
    requestLog,
    ...(publicUrl === null ? {} : { publicUrl }),
    ...(securityContacts === null ? {} : { securityContacts }),
  };
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
