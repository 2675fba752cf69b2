import type { Channel, Relay } from "../../../src/domain/channels/channel.ts";
import type { Clock } from "../../../src/domain/clock.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import type { JobRecord, QueuedJob, SuppressionReason } from "../../../src/domain/jobs/job.ts";
import type { Outcome } from "../../../src/domain/jobs/outcome.ts";
import type { OwnerQueue } from "../../../src/domain/jobs/queue.ts";
import { limits } from "../../../src/domain/limits.ts";
import type { Labels, Telemetry } from "../../../src/domain/telemetry.ts";
import type { Tenant, TenantDirectory } from "../../../src/domain/tenants/tenant.ts";
import { Dispatcher } from "../../../src/engine/dispatch/dispatcher.ts";
import { InstantQueue } from "../../support/memory-redis/instant-queue.ts";
import { MemoryQueue } from "../../support/memory-redis/memory-queue.ts";
import { NO_HISTORIES } from "../../support/no-histories.ts";
import { SeededRandom } from "../../support/seeded-random.ts";
import { aTenant } from "../../support/tenants.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

/** How a relay handles a message: with an outcome after some time, or with silence. */
export type Behaviour = { readonly tookMs: number; readonly outcome: Outcome } | "never answers";

export const TAKES: Behaviour = { tookMs: 50, outcome: { kind: "delivered", result: {} } };
export const REFUSES: Behaviour = { tookMs: 5, outcome: { kind: "away", why: "the mail server refuses connections" } };

interface Call {
  readonly job: QueuedJob;
  readonly relay: string;
  /** Milliseconds from the job's acceptance to its hand-over. */
  readonly waitedMs: number;
  readonly atMs: number;
}

/** A mail channel whose tenants have a relay each, named after the tenant, or share the platform's. */
class RelayChannel implements Channel {
  readonly name = "email";
  readonly slots: number;
  readonly relayConnections: number;
  deliveryMsMax: number = limits.deliveryTimeoutMs;
  /** Messages that were broken off in their middle. */
  cutOff = 0;
  readonly calls: Call[] = [];
  /** Absent: accepting a message takes no tokens. */
  giveBack?: NonNullable<Channel["giveBack"]>;
  readonly inFlight = new Map<string, number>();
  /** Waiters of all relays together. */
  private waiting: (() => void)[] = [];

  constructor(
    private readonly world: RelayWorld,
    connections: number,
  ) {
    this.slots = Math.min(512, connections);
    this.relayConnections = connections;
  }

  findRelay({ tenantId, emailSender }: Tenant): Relay {
    const name = emailSender?.smtpUrl ?? "platform";
    return { key: name, name: `${tenantId} to ${name}`, isOwn: name !== "platform" };
  }

  async deliver(job: QueuedJob, tenant: Tenant, signal: AbortSignal): Promise<Outcome> {
    const { clock, acceptedAtMs } = this.world;
    const { key: relay } = this.findRelay(tenant);
    while (this.connectionsInUse(relay) >= this.relayConnections) {
      if (signal.aborted) return { kind: "retry", why: "its turn did not come", isUncounted: true, isUnsent: true };
      await new Promise<void>((resolve) => {
        this.waiting.push(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    const atMs = clock.monotonicMs();
    this.calls.push({ job, relay, atMs, waitedMs: atMs - (acceptedAtMs.get(job.jobId) ?? atMs) });
    this.inFlight.set(relay, this.connectionsInUse(relay) + 1);
    const end = await this.answer(this.world.behave(job, relay), signal);
    this.inFlight.set(relay, this.connectionsInUse(relay) - 1);
    if (signal.aborted) this.cutOff += 1;
    for (const go of this.waiting.splice(0)) go();
    return end;
  }

  private connectionsInUse(relay: string): number {
    return this.inFlight.get(relay) ?? 0;
  }

  private answer(behaviour: Behaviour, signal: AbortSignal): Promise<Outcome> {
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve({ kind: "retry", why: "broken off" }), { once: true });
      if (behaviour === "never answers") return;
      this.world.clock.setTimer(behaviour.tookMs, () => resolve(behaviour.outcome));
    });
  }
}

/** An engine on a queue in memory and a virtual clock, with relays that follow the test's script. */
export class RelayWorld {
  readonly clock = new VirtualClock();
  readonly random = new SeededRandom(5);
  readonly state = new InstantQueue(() => this.clock.nowMs(), this.random);
  readonly channel: RelayChannel;
  readonly tenants = new Map<string, Tenant>();
  /** Returns a promise if the process has to load the tenant. */
  lookUp: TenantDirectory["byId"] = (tenantId) => this.tenants.get(tenantId) ?? null;
  readonly acceptedAtMs = new Map<string, number>();
  readonly logs: { readonly message: string; readonly level: string }[] = [];
  readonly gauges = new Map<string, number>();
  private readonly jobIds = new JobIds(this.clock, this.random);
  private processes = 0;

  constructor(
    readonly behave: (job: QueuedJob, relay: string) => Behaviour,
    private readonly shards = 1,
    connections = Number.POSITIVE_INFINITY,
  ) {
    this.channel = new RelayChannel(this, connections);
  }

  /** A tenant with a relay of its own of this name; without a name it uses the platform's. */
  tenant(tenantId: string, relay: string | null = null, overrides: Partial<Tenant> = {}): Tenant {
    const emailSender = relay === null ? null : { fromAddress: "a@b.test", fromName: null, smtpUrl: relay };
    const shard = this.tenants.size % this.shards;
    const tenant = aTenant({ tenantId, shard, emailSender, ...overrides });
    this.tenants.set(tenantId, tenant);
    return tenant;
  }

  accept(tenant: Tenant, count = 1, { recipient = "ann@example.com", payload = "{}" } = {}): string[] {
    return Array.from({ length: count }, () => {
      const jobId = this.jobIds.next();
      this.acceptedAtMs.set(jobId, this.clock.monotonicMs());
      const job = { jobId, channel: "email", recipient, payload, idempotency: null } as const;
      this.state.now((queue) => queue.accept(tenant, 1_000_000, job));
      return jobId;
    });
  }

  /** Applies from the next call to the queue. */
  suppress({ tenantId, shard }: Tenant, recipient: string, reason: SuppressionReason): void {
    this.state.now((queue) => queue.putSuppression({ tenantId, shard }, recipient, reason));
  }

  /** A process's way to the queue. */
  queue(): MemoryQueue {
    return new MemoryQueue(this.state.server, this.clock, this.random);
  }

  start(options: { readonly queue?: OwnerQueue; readonly clock?: Clock } = {}): Dispatcher {
    const dispatcher = new Dispatcher({
      queue: options.queue ?? this.queue(),
      directory: { byApiKey: () => null, byId: (tenantId) => this.lookUp(tenantId) },
      channels: [this.channel],
      histories: NO_HISTORIES,
      suppressions: { fill: async () => true },
      owner: `p${(this.processes += 1)}`,
      shards: this.shards,
      clock: options.clock ?? this.clock,
      random: this.random,
      telemetry: this.telemetry(),
    });
    dispatcher.start();
    return dispatcher;
  }

  /** Lets pending work proceed, and time pass. */
  async advance(ms: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await this.clock.advance(ms);
  }

  job(tenant: Tenant, jobId: string): JobRecord | null {
    return this.state.jobNow(tenant, jobId);
  }

  statuses(tenant: Tenant, jobs: readonly string[]): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const jobId of jobs) {
      const job = this.job(tenant, jobId);
      const key = `${job?.status} after ${job?.attempts}`;
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  }

  /** Hand-overs of these jobs. */
  listCalls(jobs: readonly string[]): readonly Call[] {
    const names = new Set(jobs);
    return this.channel.calls.filter(({ job }) => names.has(job.jobId));
  }

  /** The longest wait of these jobs for their first hand-over; infinite for jobs that were not handed over. */
  longestWaitMs(jobs: readonly string[]): number {
    const waits = new Map<string, number>();
    for (const { job, waitedMs } of this.listCalls(jobs)) {
      waits.set(job.jobId, Math.min(waitedMs, waits.get(job.jobId) ?? waitedMs));
    }
    return Math.max(...jobs.map((jobId) => waits.get(jobId) ?? Number.POSITIVE_INFINITY));
  }

  async stop(...dispatchers: readonly Dispatcher[]): Promise<void> {
    const stopped = Promise.all(dispatchers.map((dispatcher) => dispatcher.stop()));
    await this.advance(10_000);
    await stopped;
  }

  private telemetry(): Telemetry {
    return {
      count: () => {},
      time: () => {},
      gauge: (name: string, value: number, labels: Labels = {}) =>
        this.gauges.set([name, ...Object.values(labels)].join(" "), value),
      log: (level, message) => {
        if (level === "error") throw new Error(message);
        this.logs.push({ level, message });
      },
    };
  }
}
