import { JobIds } from "../../src/domain/ids.ts";
import type { EventType } from "../../src/domain/jobs/event.ts";
import type { JobStatus } from "../../src/domain/jobs/job.ts";
import type { Outcome } from "../../src/domain/jobs/outcome.ts";
import type { Tenant } from "../../src/domain/tenants/tenant.ts";
import { aTenant } from "../support/tenants.ts";
import { Driver } from "./driver.ts";
import type { JobTruth } from "./job-checker.ts";
import type { Mishap } from "./network.ts";
import type { Behaviour } from "./provider.ts";
import type { RelayState } from "./relays.ts";
import type { RunOptions } from "./run-options.ts";
import type { SimCluster } from "./sim-cluster.ts";
import { EPOCH_MS } from "./sim-process.ts";
import { CALM } from "./weather.ts";
import { World } from "./world.ts";

/** A message's outcome, told in one line. */
export interface MessageOutcome {
  readonly status: JobStatus;
  /** How often its provider took it. */
  readonly handOvers: number;
  /** Its events in the event store, in their order. */
  readonly eventStore: readonly EventType[];
}

/** A world without faults except those of the story. Every checker of the simulation watches it. */
export class Story {
  readonly world: World;
  private readonly driver: Driver;
  private readonly newIds: JobIds;
  private readonly slownessMs = new Map<string, number>();

  constructor(options: Partial<RunOptions> = {}) {
    const calm: RunOptions = {
      weather: { ...CALM, report: 0, isCalm: false },
      processes: 1,
      shards: 1,
      tenants: [aTenant({ tenantId: "acme" }), aTenant({ tenantId: "bolt" })],
      jobs: 0,
      slots: 16,
      patientSlots: 1_024,
      steps: 0,
      isBurst: false,
      slownessMs: this.slownessMs,
      hasRelays: true,
      relays: new Map(),
      healthy: new Set(),
      heavy: new Set(),
      callsBack: false,
      waitsForLeave: false,
      shardsPerRecord: "all",
    };
    this.world = new World(1, () => ({ ...calm, ...options }));
    this.driver = new Driver(this.world, (violation) => {
      throw new Error(`${violation.message}\n${this.world.trace.lastLines(60)}`, { cause: violation });
    });
    const clock = { nowMs: () => EPOCH_MS + this.world.clock.nowMs };
    this.newIds = new JobIds(
      { ...clock, monotonicMs: clock.nowMs, setTimer: () => ({ cancel: () => {} }) },
      this.world.dice,
    );
    this.world.places.forEach((_, place) => this.world.start(place));
    // Until every shard has its owners.
    this.advance(2_000);
  }

  tenant(tenantId: string): Tenant {
    const tenant = this.world.drawn.tenants.find((each) => each.tenantId === tenantId);
    if (tenant === undefined) throw new Error(`there is no ${tenantId} in this story`);
    return tenant;
  }

  /** A message is on disk in the queue from now on. */
  accept(tenantId = "acme", recipient = "ann@example.com", payload = "{}"): string {
    const tenant = this.tenant(tenantId);
    const jobId = this.newIds.next();
    const job = { jobId, channel: "email", recipient, payload, idempotency: null } as const;
    this.world.queue.accept(tenant, 1_000_000, job, { callerMs: 0 });
    return jobId;
  }

  acceptMany(count: number, tenantId = "acme"): readonly string[] {
    return Array.from({ length: count }, (_, i) => this.accept(tenantId, `reader${i}@example.com`));
  }

  advance(ms: number): void {
    this.driver.advance(ms);
  }

  /** Lets time pass until it is so; gives up after two minutes, or as long as is said. */
  until(why: string, isSo: () => boolean, mostMs = 120_000): void {
    const byMs = this.world.clock.nowMs + mostMs;
    this.driver.stepWhile(() => !isSo() && this.world.clock.nowMs < byMs);
    if (!isSo()) throw new Error(`it never came to this: ${why}\n${this.world.trace.lastLines(40)}`);
  }

  /** The process that plays at this place. */
  house(place = 0): SimCluster {
    const house = this.world.places[place];
    if (house === undefined || house === null) throw new Error(`nobody plays at place ${place}`);
    return house;
  }

  /** The place whose process owns the shard's deliveries. */
  findOwner(shard = 0): number {
    const token = this.world.state.holder(shard, "dispatcher");
    return this.world.places.findIndex(
      (house) =>
        house !== null && this.world.leases.findTerm(house.process, shard, "dispatcher")?.lease.token === token,
    );
  }

  get nowMs(): number {
    return this.world.clock.nowMs;
  }

  crash(place: number): void {
    this.world.crash(place);
  }

  /** The provider takes this long for a tenant's messages, at most. */
  slow(tenantId: string, mostMs: number): void {
    this.slownessMs.set(tenantId, mostMs);
  }

  /** Each of the tenant's messages takes exactly so long. */
  plotDelay(tenantId: string, ms: number): void {
    this.world.provider.delayMs = (truth) => (truth.tenant.tenantId === tenantId ? ms : null);
  }

  /** Sets the state of the tenant's relay, for so long. */
  trouble(tenantId: string, state: RelayState, forMs: number): void {
    this.world.relays.trouble(this.world.relays.findRelay({ tenantId }).key, state, forMs);
  }

  /** Names the lease term in which the shard's deliveries are. */
  findTerm(shard = 0): string | null {
    return this.world.state.holder(shard, "dispatcher");
  }

  /** How long it took from now until the message was handed over. */
  measureWait(jobId: string, mostMs = 120_000): number {
    const sinceMs = this.nowMs;
    this.until("it is handed over", () => this.outcomeFor(jobId).handOvers > 0, mostMs);
    return this.nowMs - sinceMs;
  }

  loseHints(): void {
    this.world.network.weather = { ...this.world.network.weather, lostHint: 1 };
  }

  /** Plots mishaps for the next calls whose names begin with `prefix`, in their order; later calls go through. */
  plotCalls(prefix: string, ...mishaps: readonly (Mishap | null)[]): { readonly count: number } {
    const seen = { count: 0 };
    const earlier = this.world.network.plot;
    this.world.network.plot = (name, from) => {
      if (!name.startsWith(prefix)) return earlier(name, from);
      seen.count += 1;
      return mishaps[seen.count - 1] ?? null;
    };
    return seen;
  }

  /** Plots the provider's treatment of the next messages that reach it; it accepts later ones. */
  plotProvider(...behaviours: readonly (Behaviour | Outcome)[]): void {
    let calls = 0;
    this.world.provider.plot = () => {
      calls += 1;
      return behaviours[calls - 1] ?? null;
    };
  }

  /** Reports the message's outcome to the first process. */
  report(jobId: string, type: EventType, suppressRecipient: string | null = null): void {
    const { tenantId } = this.truth(jobId).tenant;
    this.world.report({ tenantId, jobId, type, result: {}, suppressRecipient }, 0);
  }

  /** All messages that were accepted so far. */
  jobIds(): readonly string[] {
    return [...this.world.jobs.jobs.keys()];
  }

  /** Whether it waits for its next attempt. */
  isParked(jobId: string): boolean {
    return this.world.state.look(this.truth(jobId).tenant.shard).parked.has(jobId);
  }

  isInQueue(jobId: string): boolean {
    return this.world.state.jobNow(this.truth(jobId).tenant, jobId) !== null;
  }

  countAttempts(jobId: string): number {
    return this.world.state.jobNow(this.truth(jobId).tenant, jobId)?.attempts ?? 0;
  }

  /** Everything comes to rest, is recorded and stops; no promise was broken on the way. */
  end(): void {
    this.driver.settleAndStop();
  }

  outcomeFor(jobId: string): MessageOutcome {
    const truth = this.truth(jobId);
    const recorded = this.world.eventStore.job(truth.tenant.tenantId, jobId);
    const eventStore = recorded?.events.map(({ type }) => type) ?? [];
    return { status: truth.status, handOvers: truth.handOvers, eventStore };
  }

  private truth(jobId: string): JobTruth {
    const truth = this.world.jobs.jobs.get(jobId);
    if (truth === undefined) throw new Error(`${jobId} was never accepted`);
    return truth;
  }
}
