import type { Tenant } from "../../src/domain/tenants/tenant.ts";
import { engineLimits } from "../../src/engine/limits.ts";
import type { Watch } from "./promises.ts";
import type { SimClock } from "./sim-clock.ts";
import type { SimProcess } from "./sim-process.ts";

/** How often a tenant may be passed by one that has used more: both clocks of slot time are read at other moments. */
const PASSES_MAX = 8;
/** A tenant has used more if it has used so much more. */
const MORE_MS = 1_000;
const HALF_LIFE_MS = 60_000;
/** All messages of a tenant take less, or more, than what the engine calls short. */
const SURELY_SHORT_MS = 1_000;
const SURELY_LONG_MS = 2_500;

interface Standing {
  waiting: number;
  inFlight: number;
  /**
   * Hand-overs of each other tenant that had used more slot time, since this one began to wait without a delivery in
   * flight.
   */
  readonly passedBy: Map<string, number>;
  /** Slot time that it has used, as it was then. */
  used: { readonly ms: number; readonly atMs: number };
  /** The least and the most time that its messages have taken. */
  took: { readonly leastMs: number; readonly mostMs: number };
}

interface Delivery {
  readonly jobId: string;
  /** The token of the lease that it begins under. */
  readonly token: string;
  readonly isFallback: boolean;
}

/** Each tenant's deliveries in flight and waiting jobs in each process, and who was served meanwhile. */
export class FairnessChecker {
  private readonly standings = new Map<SimProcess, Map<string, Standing>>();
  private readonly windows = new Map<string, number>();
  /** Effects of a step's answers, which apply from the next step on. */
  private arriving: (() => void)[] = [];
  /** Tenants that began a delivery in this step and had none in flight before. */
  private readonly begun = new Set<Standing>();
  /** Of each process: jobs that were looked up again in the slot that their delivery has. */
  private readonly lookedUp = new Set<string>();

  constructor(
    private readonly clock: SimClock,
    private readonly watch: Watch,
    private readonly slots: number,
    /** Whether deliveries to relays that are not prompt have slots of their own, beside these. */
    private readonly hasRelays: boolean,
    /** Whether only the scheduler can make a tenant wait in this run. */
    private readonly isComparable: boolean,
  ) {}

  /** A step is over: what could start has started. */
  stepped(): void {
    this.begun.clear();
    if (this.arriving.length > 0) for (const arrive of this.arriving.splice(0)) arrive();
    if (!this.isComparable || this.hasRelays) return;
    for (const all of this.standings.values()) {
      const free = this.slots - this.slotsUsed(all);
      for (const [tenantId, standing] of all) {
        const isServed = standing.waiting <= 0 || standing.inFlight > 0 || free <= this.keptFrom(standing);
        this.watch.demand(isServed, "freeSlot", () => `${tenantId} waits while ${free} slots are free`);
      }
    }
  }

  pulled(process: SimProcess, tenantId: string, jobs: number): void {
    if (jobs > 0) this.arriving.push(() => (this.standing(process, tenantId).waiting += jobs));
  }

  /** A delivery has its slot, and looks its job up again first. */
  looksAgain(process: SimProcess, tenantId: string): void {
    const own = this.standing(process, tenantId);
    own.waiting -= 1;
    own.inFlight += 1;
    own.passedBy.clear();
    if (own.inFlight === 1) this.begun.add(own);
  }

  lookedAgain(process: SimProcess, tenantId: string, jobId: string): void {
    this.standing(process, tenantId).inFlight -= 1;
    this.lookedUp.add(formatName(process, jobId));
  }

  wasLookedUp(process: SimProcess, jobId: string): boolean {
    return this.lookedUp.has(formatName(process, jobId));
  }

  started(process: SimProcess, tenant: Tenant, { jobId, token, isFallback }: Delivery): void {
    const wasLookedUp = this.lookedUp.delete(formatName(process, jobId));
    // Otherwise it was taken before, to look the job up or to ask after its message.
    const tookSlotNow = !wasLookedUp && !isFallback;
    const { watch } = this;
    const all = this.ofProcess(process);
    const own = this.standing(process, tenant.tenantId);
    if (!wasLookedUp) own.waiting -= 1;
    own.inFlight += 1;
    own.passedBy.clear();
    const window = this.changeWindow(tenant, token, 1);
    watch.demand(window <= engineLimits.tenantWindowMax, "memory", () => `${window} deliveries of ${tenant.tenantId}`);
    if (this.hasRelays) return;
    const used = this.slotsUsed(all);
    watch.demand(used <= this.slots, "memory", () => `${used} deliveries in ${this.slots} slots`);
    if (own.inFlight === 1) this.begun.add(own);
    // Content and jobs are looked at between a slot and its delivery: who took the last slots may begin first.
    let later = 0;
    for (const other of all.values()) if (other !== own && other.inFlight === 1 && this.begun.has(other)) later += 1;
    // Jobs lent in a former term count for the slots, but not for its next actor.
    const isModest = !tookSlotNow || window === 1 || used - later <= this.slots - this.last;
    watch.demand(isModest, "reserve", () => `${tenant.tenantId} took the ${used}th of ${this.slots} slots`);
    if (tookSlotNow && isSurelyLong(own)) this.checkLong(all, tenant.tenantId);
    if (this.isComparable && tookSlotNow && used <= this.slots - this.last) this.countPassed(all, tenant.tenantId);
  }

  ended(
    process: SimProcess,
    tenant: Tenant,
    { token, tookMs }: { readonly token: string; readonly tookMs: number },
  ): void {
    const standing = this.standing(process, tenant.tenantId);
    const { took } = standing;
    standing.inFlight -= 1;
    standing.used = { ms: this.usedMs(standing) + tookMs, atMs: this.clock.nowMs };
    standing.took = { leastMs: Math.min(took.leastMs, tookMs), mostMs: Math.max(took.mostMs, tookMs) };
    this.changeWindow(tenant, token, -1);
  }

  /** The last slots, which only a tenant without a delivery in flight takes. */
  private get last(): number {
    return Math.ceil(Math.floor(this.slots / 4) / 4);
  }

  /** Free slots that a tenant without a delivery in flight may have to leave to others. */
  private keptFrom(standing: Standing): number {
    return isSurelyShort(standing) ? this.last : Math.floor(this.slots / 4);
  }

  private checkLong(all: ReadonlyMap<string, Standing>, tenantId: string): void {
    let held = 0;
    for (const each of all.values()) if (isSurelyLong(each)) held += each.inFlight;
    const isModest = held <= this.slots - Math.floor(this.slots / 4);
    this.watch.demand(
      isModest,
      "reserve",
      () => `${tenantId} is slow, and such tenants have ${held} of ${this.slots} slots`,
    );
  }

  private usedMs({ used }: Standing): number {
    return used.ms * 2 ** ((used.atMs - this.clock.nowMs) / HALF_LIFE_MS);
  }

  /** A tenant's deliveries started in a lease term: lent ones go on beside those of the next term. */
  private changeWindow({ tenantId }: Tenant, token: string, by: 1 | -1): number {
    const key = `${token} ${tenantId}`;
    const window = (this.windows.get(key) ?? 0) + by;
    if (window === 0) this.windows.delete(key);
    else this.windows.set(key, window);
    return window;
  }

  private countPassed(all: ReadonlyMap<string, Standing>, tenantId: string): void {
    const own = this.usedMs(all.get(tenantId) ?? NEW);
    for (const [other, standing] of all) {
      if (other === tenantId || standing.waiting <= 0 || standing.inFlight > 0) continue;
      if (!isSurelyShort(standing) || own < this.usedMs(standing) + MORE_MS) continue;
      const count = (standing.passedBy.get(tenantId) ?? 0) + 1;
      standing.passedBy.set(tenantId, count);
      this.watch.demand(count <= PASSES_MAX, "fairShare", () => `${tenantId} passed ${other} ${count} times`);
    }
  }

  private slotsUsed(all: ReadonlyMap<string, Standing>): number {
    let used = 0;
    for (const { inFlight } of all.values()) used += inFlight;
    return used;
  }

  private standing(process: SimProcess, tenantId: string): Standing {
    const all = this.ofProcess(process);
    const known = all.get(tenantId) ?? { ...NEW, passedBy: new Map() };
    all.set(tenantId, known);
    return known;
  }

  private ofProcess(process: SimProcess): Map<string, Standing> {
    const all = this.standings.get(process) ?? new Map<string, Standing>();
    this.standings.set(process, all);
    return all;
  }
}

const NEW: Standing = {
  waiting: 0,
  inFlight: 0,
  passedBy: new Map(),
  used: { ms: 0, atMs: 0 },
  took: { leastMs: Number.POSITIVE_INFINITY, mostMs: 0 },
};

function isSurelyShort({ took: { leastMs, mostMs } }: Standing): boolean {
  return leastMs <= mostMs && mostMs < SURELY_SHORT_MS;
}

function isSurelyLong({ took: { leastMs, mostMs } }: Standing): boolean {
  return leastMs <= mostMs && leastMs > SURELY_LONG_MS;
}

function formatName({ name }: SimProcess, jobId: string): string {
  return `${name} ${jobId}`;
}
