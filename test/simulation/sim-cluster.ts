import { acceptEmail } from "../../src/channels/email/request.ts";
import { isOutage, UnavailableError } from "../../src/domain/errors.ts";
import { JobIds, jobTimeMs } from "../../src/domain/ids.ts";
import type { Batch, BatchIds, BatchResult, MadeMessage } from "../../src/domain/jobs/batch.ts";
import type { EventReader, EventWriter } from "../../src/domain/jobs/event-store.ts";
import { fallbackId } from "../../src/domain/jobs/fallback.ts";
import { observeReport } from "../../src/domain/jobs/observe-report.ts";
import type { AcceptResult, Lease, NewJob, ObserveResult } from "../../src/domain/jobs/queue.ts";
import type { DeliveryReport } from "../../src/domain/jobs/report.ts";
import type { FailedJobs } from "../../src/domain/jobs/retry.ts";
import type { Telemetry } from "../../src/domain/telemetry.ts";
import type { Tenant } from "../../src/domain/tenants/tenant.ts";
import type { JsonObject } from "../../src/domain/texts/json.ts";
import { QueuedBatches } from "../../src/engine/batches/queued-batches.ts";
import { Dispatcher } from "../../src/engine/dispatch/dispatcher.ts";
import { Recorder } from "../../src/engine/recorder/recorder.ts";
import { DeliveryReports } from "../../src/engine/reports/delivery-reports.ts";
import { Retries } from "../../src/engine/retries/retries.ts";
import { JobScheduler } from "../../src/engine/schedule/job-schedule.ts";
import type { Dice } from "./dice.ts";
import type { Network, Server } from "./network.ts";
import type { Watch } from "./promises.ts";
import type { Provider } from "./provider.ts";
import { SimDirectory } from "./sim-directory.ts";
import type { SimEventStore } from "./sim-event-store.ts";
import type { SimProcess } from "./sim-process.ts";
import { SimQueue } from "./sim-queue.ts";
import type { WatchedQueue } from "./watched-queue.ts";

/** The state that all processes share. */
export interface Context {
  readonly network: Network;
  readonly watch: Watch;
  readonly queue: WatchedQueue;
  readonly queueServer: Server;
  readonly eventStore: SimEventStore;
  readonly eventStoreServer: Server;
  readonly provider: Provider;
  readonly tenants: ReadonlyMap<string, Tenant>;
  readonly shards: number;
  /** One in a cluster. */
  readonly shardsPerRecord: "all" | "one";
}

export interface SendRequest {
  readonly tenant: Tenant;
  readonly body: JsonObject;
  readonly idempotencyKey: string | null;
  /** How long until it is to be sent; null: at once. */
  readonly inMs: number | null;
  /** How long after it its fallback is due; null: it has none. */
  readonly fallbackAfterMs: number | null;
}

export interface BatchRequest {
  readonly tenant: Tenant;
  readonly bodies: readonly JsonObject[];
  readonly idempotencyKey: string | null;
}

/** One process with all the roles of the production engine, on simulated ports. */
export class SimCluster {
  readonly reports: DeliveryReports;
  private readonly retries: Retries;
  private readonly schedule: JobScheduler;
  private readonly dispatcher: Dispatcher;
  private readonly recorder: Recorder;
  private readonly jobIds: JobIds;
  private readonly queue: SimQueue;
  private readonly batches: QueuedBatches;
  readonly directory: SimDirectory;

  constructor(
    readonly process: SimProcess,
    private readonly around: Context,
    private readonly dice: Dice,
  ) {
    const { network, queueServer, tenants, shards, provider } = around;
    const { clock, name: owner } = process;
    const queue = new SimQueue(process, network, queueServer, around.queue, tenants, around.shardsPerRecord);
    const telemetry = this.telemetry();
    const directory = new SimDirectory(process, network, tenants, dice.fork());
    const { writer, reader } = this.eventStore();
    const suppressions = this.suppressions();
    const common = { queue, clock, random: dice, telemetry, owner, shards, suppressions };
    this.queue = queue;
    this.directory = directory;
    this.jobIds = new JobIds(clock, dice);
    this.batches = new QueuedBatches({ queue, jobIds: this.jobIds });
    const channels = [provider.createChannel(process)];
    this.dispatcher = new Dispatcher({ ...common, directory, channels, histories: { queue, eventStore: reader } });
    this.recorder = new Recorder({ ...common, eventStore: writer });
    this.retries = new Retries({
      queue,
      eventStore: reader,
      payloads: {
        put: () => Promise.reject(new Error("nothing is stored elsewhere")),
        get: () => Promise.resolve(null),
      },
      charges: { take: () => Promise.resolve({ kind: "free" }), giveBack: () => Promise.resolve() },
      clock,
    });
    const payloads = { remove: () => Promise.resolve() };
    const charges = { discard: () => Promise.resolve() };
    this.schedule = new JobScheduler({ queue, eventStore: reader, payloads, charges, clock, telemetry });
    this.reports = new DeliveryReports({ queue, directory, eventStore: reader, clock, random: dice, telemetry });
  }

  start(): void {
    this.dispatcher.start();
    this.recorder.start();
  }

  /** Retries these failed jobs as the front door does for an operator. */
  async retry(tenant: Tenant, jobIds: readonly string[]): Promise<void> {
    try {
      await this.retries.retry(tenant, jobIds);
    } catch (error) {
      if (!isOutage(error)) throw error;
    }
  }

  /** Moves or cancels a job as the front door does for a tenant. */
  async change(tenant: Tenant, jobId: string, change: { readonly inMs: number } | "cancel"): Promise<void> {
    try {
      if (change === "cancel") {
        const { timesForgot } = this.around.queue;
        if ((await this.schedule.cancel(tenant, jobId)) === "canceled") {
          this.around.queue.heardCancel(jobId, timesForgot);
        }
      } else await this.schedule.reschedule(tenant, jobId, this.clientMs() + change.inMs);
    } catch (error) {
      if (!isOutage(error)) throw error;
    }
  }

  /** The time by the clock of whoever asks, which is right. */
  private clientMs(): number {
    return this.process.clock.nowMs() - this.process.skewMs;
  }

  /** As on SIGTERM: the work first, then its history. */
  async stop(): Promise<void> {
    await this.dispatcher.stop();
    await Promise.all([this.recorder.stop(), this.reports.stop()]);
  }

  /** Handles a report as the front door does; the provider calls again until it is answered. */
  webhook(report: DeliveryReport): Promise<ObserveResult> {
    const ports = { queue: this.queue, directory: this.directory, eventStore: this.eventStore().reader };
    return observeReport(ports, report);
  }

  /** Accepts a request as the front door does; null if it is refused. */
  async send({ tenant, body, idempotencyKey, inMs, fallbackAfterMs }: SendRequest): Promise<AcceptResult | null> {
    const acceptance = acceptEmail(tenant, body);
    if (!acceptance.ok) return null;
    const idempotency = idempotencyKey === null ? null : { key: idempotencyKey, fingerprint: JSON.stringify(body) };
    const { queuedJobsMax: jobs, queuedBytesMax: bytes } = tenant.plan;
    const quota = jobs === undefined || bytes === undefined ? {} : { quota: { jobs, bytes } };
    const due = inMs === null ? {} : { dueMs: this.clientMs() + inMs };
    const job: NewJob = {
      jobId: this.jobIds.next(),
      channel: "email",
      ...acceptance.job,
      ...quota,
      ...due,
      idempotency,
    };
    if (fallbackAfterMs === null) return await this.queue.accept(tenant, tenant.plan.requestsPerMinute, job);
    return await this.sendWithFallback(tenant, job, fallbackAfterMs);
  }

  /** As the front door does: the fallback first, and its message alone under the key. */
  private async sendWithFallback(tenant: Tenant, job: NewJob, afterMs: number): Promise<AcceptResult> {
    const fallback = { mainJobId: job.jobId, number: 1, afterMs, unless: ["sent"] } as const;
    const dueMs = Math.max(jobTimeMs(job.jobId), job.dueMs ?? 0) + afterMs;
    const jobId = fallbackId(job.jobId, 1);
    const recipient = `dee-${jobId}@example.com`;
    const common = { ...job, jobId, recipient, dueMs, fallback, needsScreening: true, idempotency: null } as const;
    const queued = await this.queue.accept(tenant, null, common);
    if (queued.kind !== "accepted") return queued;
    const result = await this.queue.accept(tenant, tenant.plan.requestsPerMinute, job);
    if (result.kind !== "accepted") await this.schedule.cancel(tenant, jobId);
    return result;
  }

  /** Accepts a batch as the front door does, in pieces of two; null where no store answers. */
  async sendBatch({ tenant, bodies, idempotencyKey: key }: BatchRequest): Promise<BatchResult | null> {
    const { queuedJobsMax: jobs, queuedBytesMax: bytes } = tenant.plan;
    const { timesForgot } = this.around.queue;
    const idempotency = key === null ? null : { key, fingerprint: JSON.stringify(bodies) };
    const message = (index: number, ids: BatchIds): MadeMessage => {
      const acceptance = acceptEmail(tenant, bodies[index]);
      if (!acceptance.ok) return { index, refusal: acceptance.refusal.message };
      const quota = { jobs, bytes };
      return { index, job: { jobId: ids.jobId(index), channel: "email", ...acceptance.job, quota, idempotency: null } };
    };
    const batch: Batch = {
      tenant,
      requestsPerMinute: tenant.plan.requestsPerMinute,
      isCounted: false,
      idempotency,
      size: bodies.length,
      make: (from, ids) => {
        const next = Math.min(from + 2, bodies.length);
        const indexes = Array.from({ length: next - from }, (_, i) => from + i).filter((index) => !ids.isQueued(index));
        return { messages: indexes.map((index) => message(index, ids)), next };
      },
      onQueued: () => undefined,
      describeRefusal: (noRoom) => noRoom,
    };
    try {
      const result = await this.batches.accept(batch);
      if (result.kind === "answered" && idempotency !== null) {
        this.around.queue.heardBatch(tenant, idempotency, result.outcomes, timesForgot);
      }
      return result;
    } catch (error) {
      if (!isOutage(error)) throw error;
      return null;
    }
  }

  /** Discards log lines, but takes note of unexpected errors. */
  private telemetry(): Telemetry {
    return {
      count: () => {},
      gauge: () => {},
      time: () => {},
      log: (level, message, fields) => {
        this.around.watch.demand(level !== "error", "noDefect", () => `${message} ${JSON.stringify(fields)}`);
      },
    };
  }

  /** The queue's index of whom not to send to is complete, once the registry can be asked. */
  private suppressions() {
    const { network, queue } = this.around;
    return {
      fill: (lease: Lease): Promise<boolean> => {
        const isAway = this.dice.chance(network.weather.registryAway);
        if (isAway) return Promise.reject(new UnavailableError("no registry"));
        return Promise.resolve(queue.state.holder(lease.shard, lease.role) === lease.token);
      },
    };
  }

  private eventStore(): { readonly writer: EventWriter; readonly reader: EventReader & FailedJobs } {
    const { network, eventStore, eventStoreServer } = this.around;
    const call = <T>(name: string, effect: () => T) =>
      network.call({ from: this.process, to: eventStoreServer, name, effect });
    return {
      writer: { write: (token, rows) => call(`insert ${token}`, () => eventStore.insert(token, rows)) },
      reader: {
        page: () => Promise.resolve({ events: [], hasMore: false }),
        job: (tenantId, jobId) => call("event store job", () => eventStore.job(tenantId, jobId)),
        failedJobs: (tenantId, jobIds) =>
          call("failed jobs", () => {
            const found = jobIds.map((jobId) => [jobId, eventStore.failedJob(tenantId, jobId)] as const);
            return new Map(found.flatMap(([jobId, job]) => (job === null ? [] : [[jobId, job] as const])));
          }),
      },
    };
  }
}
