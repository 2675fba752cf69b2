import type { ApiPorts } from "../../../src/app/api-ports.ts";
import { CHANNELS } from "../../../src/app/channels.ts";
import { createApi } from "../../../src/app/endpoints.ts";
import type { OpenRegistry } from "../../../src/app/open-registry.ts";
import type { DnsResolver } from "../../../src/channels/email/domains/dns.ts";
import { DomainService } from "../../../src/channels/email/domains/domain-service.ts";
import { PlatformSenderDomain } from "../../../src/channels/email/domains/sender-domain.ts";
import { LinkTokens } from "../../../src/channels/email/links/link-tokens.ts";
import { MailReports } from "../../../src/channels/email/reports/mail-reports.ts";
import { SmtpProbe } from "../../../src/channels/email/smtp/smtp-probe.ts";
import type { PassKitPorts } from "../../../src/channels/wallet/devices/pass-kit-ports.ts";
import { walletCharges } from "../../../src/channels/wallet/retry-charges.ts";
import type { CallbackPart, ChatMessage, WhatsappStatus } from "../../../src/channels/whatsapp/callbacks/webhook.ts";
import { TemplateDesk } from "../../../src/channels/whatsapp/templates/template-desk.ts";
import { TemplateReader } from "../../../src/channels/whatsapp/templates/template-reader.ts";
import type { PlatformCredentials } from "../../../src/domain/channels/platform.ts";
import type { Clock } from "../../../src/domain/clock.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { DeliveryReport, Engagement } from "../../../src/domain/jobs/report.ts";
import type { Random } from "../../../src/domain/random.ts";
import { done } from "../../../src/domain/store-result.ts";
import type { Telemetry } from "../../../src/domain/telemetry.ts";
import type { Permission } from "../../../src/domain/tenants/tenant.ts";
import { QueuedBatches } from "../../../src/engine/batches/queued-batches.ts";
import { JobScheduler } from "../../../src/engine/schedule/job-schedule.ts";
import { eventStoreInTurn } from "../../../src/events/history-in-turn.ts";
import { eventLimits } from "../../../src/events/limits.ts";
import { CallTurns } from "../../../src/http/call-turns.ts";
import { OperatorSessions } from "../../../src/http/operator-sessions.ts";
import type { Server } from "../../../src/http/server.ts";
import { OVERVIEW_EXAMPLE } from "../../../src/operators/overview/schema.ts";
import { NetworkGuard } from "../../../src/runtime/network-guard.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";
import { WebhookClient } from "../../../src/runtime/webhook-client.ts";
import { SuppressionList } from "../../../src/tenants/suppression-list.ts";
import { WebhookTests } from "../../../src/webhooks/webhook-tests.ts";
import { must } from "../../support/must.ts";
import { openRegistryDatabase, type RegistryDatabase } from "../../support/registry-database.ts";
import { openTestRegistry } from "../../tenants/open-test-registry.ts";
import { FakeEventStore } from "./fake-event-store.ts";
import { FakeQueue } from "./fake-queue.ts";
import { MemoryPayloads } from "./memory-payloads.ts";
import { NO_WALLET } from "./no-wallet.ts";

/** Signs and reads the links of the tests. */
export const linkTokens = new LinkTokens([new Uint8Array(32).fill(5)]);

/** Provider credentials of tenants without their own. */
const PLATFORM: PlatformCredentials = {
  whatsapp: { phoneNumberId: "100000000000001", accessToken: "platform-token" },
  apple: null,
  google: null,
};

/** The newer one first during a rotation. */
export const WEBHOOK_SECRETS = ["webhook-secret-of-the-tests", "webhook-secret-before-that"] as const;

export const OPERATOR_TOKEN = "operator-token-of-the-tests";

const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
};

const random: Random = { next: () => Math.random(), fill: (bytes) => crypto.getRandomValues(bytes) };

const unanswered = async () => ({ kind: "unanswered", why: "there is no DNS here" }) as const;
const NO_DNS: DnsResolver = { txt: unanswered, mx: unanswered };

export const NO_PASSES: PassKitPorts = {
  passes: { findBySerial: async () => [], bundle: async () => null, update: async () => null },
  devices: { register: async () => "known", unregister: async () => false, updatedSince: async () => null },
  webhooks: { note: () => undefined },
  bundles: { getBundle: async () => null, signText: async () => ({ why: "nobody signs here" }) },
  news: { tell: async () => undefined, isAskedFor: async () => false },
  jobIds: new JobIds(systemClock, systemRandom),
  log: { take: () => undefined },
};

/** Tenants' webhooks may be on this machine, as with the sandbox. */
const LOOPBACK = new NetworkGuard({ allow: ["127.0.0.0/8"], publicAllowed: false });

/** Ports that stand in for a test's own, or make them from the registry. */
type Changes = Partial<ApiPorts> | ((stores: OpenRegistry) => Partial<ApiPorts>);

/**
 * A front door on a free port, with the tenant `acme` that may send anything, over a real registry; its other ports are
 * in memory.
 */
export class Front {
  readonly queue = new FakeQueue();
  readonly payloads = new MemoryPayloads();
  readonly eventStore = new FakeEventStore();
  readonly logs: { readonly level: string; readonly message: string; readonly fields: unknown }[] = [];
  readonly engagements: Engagement[] = [];
  readonly reports: DeliveryReport[] = [];
  /** The tenants that own jobs, by job id. */
  readonly owners = new Map<string, string>();
  /** The purges that were requested; each counts as many jobs as are unfinished. */
  readonly purges: unknown[] = [];
  readonly statuses: WhatsappStatus[] = [];
  readonly incoming: ChatMessage[] = [];
  readonly parts: CallbackPart[] = [];
  /** Returns the last sender to a number, and the time. */
  lastWritten: (phoneNumberId: string, from: readonly string[]) => number | null = () => null;
  /** The address where the chat provider lists templates; empty: none. */
  graphUrl = "";
  /** Rejects the chat provider's reports, as an unavailable queue does. */
  statusFailure: Error | null = null;
  readonly ports: ApiPorts;
  readonly server: Server;
  url = "";
  port = 0;
  apiKey = "";
  private stopping: Promise<void> | null = null;

  private templateReader(): TemplateReader {
    return new TemplateReader({ baseUrl: this.graphUrl, version: "v25.0" });
  }

  private constructor(
    readonly database: RegistryDatabase,
    readonly stores: OpenRegistry,
    changes: Changes,
  ) {
    const { queue, eventStore, logs } = this;
    const { registry, directory } = stores;
    const telemetry: Telemetry = {
      count: () => {},
      gauge: () => {},
      time: () => {},
      log: (level, message, fields) => logs.push({ level, message, fields: fields ?? {} }),
    };
    const reads = new CallTurns(eventLimits.historyReads, clock);
    const reports = { take: async (report: DeliveryReport) => void this.reports.push(report) };
    this.ports = {
      queue,
      batches: new QueuedBatches({ queue, jobIds: new JobIds(clock, random) }),
      payloads: this.payloads,
      contents: stores.jobContents,
      questions: { ask: async () => null },
      processStatuses: { statuses: async () => ({ statuses: [], accepted: [], acceptedToday: 0 }) },
      directory,
      registry,
      operators: stores.operators,
      operatorAccounts: stores.operatorAccounts,
      audit: stores.audit,
      domains: new DomainService({
        store: stores.domains,
        dns: NO_DNS,
        relayProbe: new SmtpProbe({
          guard: new NetworkGuard({ allow: [], publicAllowed: false }),
          ehloName: "send.test",
        }),
        directory,
        mailHost: "mx.platform.test",
        clock,
        random,
      }),
      senderDomain: new PlatformSenderDomain({
        store: stores.senderDomain,
        dns: NO_DNS,
        mailHost: "mx.platform.test",
        clock,
        random,
      }),
      eventStore,
      finishedJobs: eventStore,
      mailHistory: { mailCounts: async () => new Map() },
      reputationRules: {
        mode: "on",
        bounces: { warned: 0.04, slowed: 0.06, held: 0.1 },
        complaints: { warned: 0.001, slowed: 0.002, held: 0.005 },
      },
      eventMetrics: { isFromSums: () => true, metrics: async () => [] },
      operatorSums: { failures: async () => [], spans: async () => [] },
      reads,
      overview: { now: async () => OVERVIEW_EXAMPLE },
      exports: { open: async () => (async function* () {})() },
      schedule: new JobScheduler({
        queue,
        payloads: this.payloads,
        eventStore: eventStoreInTurn(eventStore, reads),
        charges: walletCharges(stores.passes),
        clock,
        telemetry,
      }),
      retries: { retry: async () => new Map(), findContent: async () => null },
      clock,
      random,
      jobIds: new JobIds(clock, random),
      telemetry,
      metricsText: async () => "# TYPE waybill_up gauge\nwaybill_up 1\n",
      readiness: { look: async () => ({ failing: [], away: [] }) },
      sandbox: null,
      deviceLog: { latest: () => [] },
      platform: PLATFORM,
      links: linkTokens,
      suppressions: new SuppressionList({ registry, index: queue, queue, recipients: stores.recipients }),
      purging: { hastenParked: async (tenant, channels) => this.purges.push({ ...tenant, channels }) },
      engagements: { note: (engagement) => this.engagements.push(engagement) },
      mailReports: new MailReports({
        reports,
        links: linkTokens,
        owners: { findOwner: async (jobId) => this.owners.get(jobId) ?? null },
        clock,
        telemetry,
      }),
      whatsapp: {
        webhookSecrets: WEBHOOK_SECRETS,
        statuses: { take: (statuses) => this.takeStatuses(statuses) },
        incoming: { take: async (messages) => void this.incoming.push(...messages) },
        parts: { take: async ({ parts }) => void this.parts.push(...parts) },
        messages: { page: async () => done({ items: [], nextCursor: null }) },
        templates: new TemplateDesk({
          reader: {
            all: (...asked) => this.templateReader().all(...asked),
            named: (...asked) => this.templateReader().named(...asked),
          },
          store: registry.chatTemplates,
          clock,
          telemetry,
        }),
        windows: { lastWrittenMs: async (...asked) => this.lastWritten(...asked) },
      },
      passKit: NO_PASSES,
      wallet: NO_WALLET,
      webhooks: {
        feed: eventStore,
        outbound: LOOPBACK,
        tests: new WebhookTests({
          store: stores.webhookDeliveries,
          caller: new WebhookClient({ guard: LOOPBACK }),
          clock,
          telemetry,
        }),
      },
      operatorToken: OPERATOR_TOKEN,
      sessions: new OperatorSessions([new Uint8Array(32).fill(7)]),
      version: "0.0.0-test",
      shards: 1,
      history: eventStore,
      recipients: stores.recipients,
      ...(typeof changes === "function" ? changes(stores) : changes),
    };
    this.server = createApi(this.ports, CHANNELS);
  }

  static async start(changes: Changes = {}): Promise<Front> {
    const database = await openRegistryDatabase();
    const stores = await openTestRegistry(database);
    const { registry } = stores;
    const front = new Front(database, stores, changes);
    await must(registry.createTenant({ id: "acme", name: "Acme", plan: "pro", permissions: ["allow_raw_html"] }));
    const { api_key } = await must(registry.createKey("acme"));
    const template = { slug: "welcome", channel: "email", subject: "Hi", html: "<p>Hi</p>", text: null } as const;
    await must(registry.putTemplate("acme", template));
    const { url, port } = await front.server.listen({ host: "127.0.0.1", port: 0 });
    return Object.assign(front, { url, port, apiKey: api_key });
  }

  private async takeStatuses(statuses: readonly WhatsappStatus[]): Promise<void> {
    if (this.statusFailure !== null) throw this.statusFailure;
    this.statuses.push(...statuses);
  }

  get registry(): OpenRegistry["registry"] {
    return this.stores.registry;
  }

  /** May be called twice. */
  stop(): Promise<void> {
    this.stopping ??= this.end();
    return this.stopping;
  }

  private async end(): Promise<void> {
    await this.server.stop();
    await this.stores.stop();
    await this.database.close();
  }

  /** A change of acme makes this process read it again; until then, it is served from memory. */
  async forgetAcme(): Promise<void> {
    await this.registry.changeTenant("acme", { name: "Acme" });
  }

  /** A tenant beside acme, and its key. */
  async addTenant(id: string, plan: string, permissions: readonly Permission[] = []): Promise<string> {
    await must(this.registry.createTenant({ id, name: id, plan, permissions }));
    return (await must(this.registry.createKey(id))).api_key;
  }

  /** Makes a request of acme's. */
  request(method: string, path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.fetch(path, { method, headers: { "X-API-Key": this.apiKey, ...headers } });
  }

  /** Makes a send of acme's; a body that is not text is written as JSON. */
  send(body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.post("/v1/send/email", body, headers);
  }

  /** Makes a chat send of acme's. */
  sendChat(body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.post("/v1/send/whatsapp", body, headers);
  }

  /** Makes a post of acme's. */
  post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const all = { "X-API-Key": this.apiKey, "Content-Type": "application/json", ...headers };
    return this.fetch(path, { method: "POST", headers: all, body: text });
  }

  /** Makes an operator's call. */
  operate(method: string, path: string, body?: unknown): Promise<Answer> {
    const headers = { Authorization: `Bearer ${OPERATOR_TOKEN}`, "Content-Type": "application/json" };
    const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    return this.fetch(`/dash/api${path}`, init);
  }

  async fetch(path: string, init: RequestInit = {}): Promise<Answer> {
    const response = await fetch(this.url + path, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: parse(text) };
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body where it is a JSON object, otherwise an empty one. */
  readonly body: Readonly<Record<string, unknown>>;
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
