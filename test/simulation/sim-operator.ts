import type { Steering } from "../../src/domain/tenants/steering.ts";
import type { Tenant } from "../../src/domain/tenants/tenant.ts";
import type { Dice } from "./dice.ts";
import type { JobTruth } from "./job-checker.ts";
import type { Watch } from "./promises.ts";
import type { SimClock } from "./sim-clock.ts";
import { EPOCH_MS, type SimProcess } from "./sim-process.ts";

/** The longest that a tenant stays paused before somebody remembers it. */
const PAUSE_MS_MAX = 60_000;

const RETRIES_MAX = 3;
const RETRY_MS_MAX = 20_000;
/** Two operators see the same failure, or one asks twice. */
const CALLED_TWICE = 0.3;

/** A process, as far as it retries jobs. */
export interface Retrier {
  readonly process: SimProcess;
  retry(tenant: Tenant, jobIds: readonly string[]): Promise<void>;
}

export interface Retrial {
  readonly dice: Dice;
  /** Of all failed jobs. */
  readonly share: number;
  /** Some process that runs; null: there is none. */
  aHouse(dice: Dice): Retrier | null;
}

interface Retrying {
  /** Null: its time has not come. */
  house: Retrier | null;
}

/**
 * Pauses tenants and resumes them, and has failed jobs tried again. Its decisions are in the registry at once, and no
 * process remembers less.
 */
export class SimOperator {
  /** Tenants that it paused, in all. */
  pauses = 0;
  private isOver = false;
  private retrial: Retrial | null = null;
  private readonly retrying = new Set<Retrying>();

  constructor(
    private readonly clock: SimClock,
    private readonly watch: Watch,
    /** The registry's. */
    private readonly tenants: Map<string, Tenant>,
  ) {}

  /** Pauses one of these tenants every now and then, until `end`. */
  begin(dice: Dice, everyMs: number, tenantIds: readonly string[]): void {
    if (everyMs === 0 || tenantIds.length === 0) return;
    this.clock.at(2 * everyMs * dice.next(), () => {
      if (this.isOver) return;
      const tenantId = dice.pick(tenantIds);
      this.pause(tenantId);
      this.clock.at(dice.skewed(PAUSE_MS_MAX), () => this.resume(tenantId));
      this.begin(dice, everyMs, tenantIds);
    });
  }

  /** From now on it has failed jobs tried again, each with this chance, soon after their failure. */
  retryFailed(retrial: Retrial): void {
    this.retrial = retrial;
  }

  /** A job has ended, at this instant. */
  ended(truth: JobTruth): void {
    const { retrial } = this;
    if (retrial === null || truth.status !== "failed" || truth.retries >= RETRIES_MAX) return;
    const { dice, share, aHouse } = retrial;
    if (!dice.chance(share)) return;
    for (let calls = dice.chance(CALLED_TWICE) ? 2 : 1; calls > 0; calls -= 1) {
      const one: Retrying = { house: null };
      this.retrying.add(one);
      this.clock.at(dice.skewed(RETRY_MS_MAX), () => {
        one.house = aHouse(dice);
        if (one.house === null) this.retrying.delete(one);
        else this.retry(one, one.house, truth);
      });
    }
  }

  private retry(one: Retrying, house: Retrier, { tenant, jobId }: JobTruth): void {
    house.process.enter(() => void house.retry(tenant, [jobId]).then(() => this.retrying.delete(one)), "answer");
  }

  /** Whether jobs are to be tried again, or one of these processes is about it. */
  isRetrying(houses: readonly (Retrier | null)[]): boolean {
    return Array.from(this.retrying).some(({ house }) => house === null || houses.includes(house));
  }

  /** All tenants go on. */
  end(): void {
    this.isOver = true;
    for (const tenantId of this.tenants.keys()) this.resume(tenantId);
  }

  pause(tenantId: string): void {
    if (this.isPaused(tenantId)) return;
    this.pauses += 1;
    this.steer(tenantId, (steering) => ({ ...steering, paused: new Set(["email"]) }));
  }

  resume(tenantId: string): void {
    if (!this.isPaused(tenantId)) return;
    const resumedAt = new Map([["email", EPOCH_MS + this.clock.nowMs]]);
    this.steer(tenantId, (steering) => ({ ...steering, paused: new Set(), resumedAt }));
  }

  /** Ends all jobs that were accepted so far. */
  purge(tenantId: string): void {
    const purgedBefore = new Map([["email", EPOCH_MS + this.clock.nowMs]]);
    this.steer(tenantId, (steering) => ({ ...steering, purgedBefore }));
  }

  isPaused(tenantId: string): boolean {
    return this.tenants.get(tenantId)?.steering?.paused.has("email") === true;
  }

  isPurged(tenantId: string, acceptedMs: number): boolean {
    const beforeMs = this.tenants.get(tenantId)?.steering?.purgedBefore.get("email") ?? 0;
    return EPOCH_MS + acceptedMs <= beforeMs;
  }

  /** When the tenant's last pause ended, or now while it lasts; 0: it was never paused. */
  pausedUntilMs(tenantId: string): number {
    if (this.isPaused(tenantId)) return this.clock.nowMs;
    return (this.tenants.get(tenantId)?.steering?.resumedAt.get("email") ?? EPOCH_MS) - EPOCH_MS;
  }

  /** A delivery of the tenant starts. */
  started(tenantId: string, jobId: string): void {
    this.watch.demand(!this.isPaused(tenantId), "paused", () => `${jobId} of ${tenantId}`);
  }

  private steer(tenantId: string, change: (steering: Steering) => Steering): void {
    const tenant = this.tenants.get(tenantId);
    if (tenant !== undefined) {
      this.tenants.set(tenantId, { ...tenant, steering: change(tenant.steering ?? UNTOUCHED) });
    }
  }
}

const UNTOUCHED: Steering = { paused: new Set(), held: new Set(), purgedBefore: new Map(), resumedAt: new Map() };
