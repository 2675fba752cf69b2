import { UnavailableError } from "../../src/domain/errors.ts";
import type { Tenant, TenantDirectory } from "../../src/domain/tenants/tenant.ts";
import type { Dice } from "./dice.ts";
import type { Network } from "./network.ts";
import type { SimProcess } from "./sim-process.ts";

/** The largest number of tenants in a load. */
const TENANTS_AT_ONCE = 50;

/**
 * A process's tenants: from memory while it remembers them, else by a load from the registry. One load runs at a
 * time, and brings tenants that were asked for before it began, in their order.
 */
export class SimDirectory implements TenantDirectory {
  private readonly known = new Set<string>();
  private readonly wanted = new Map<string, PromiseWithResolvers<Tenant | null>>();
  private isLoading = false;

  constructor(
    private readonly process: SimProcess,
    private readonly network: Network,
    private readonly tenants: ReadonlyMap<string, Tenant>,
    private readonly dice: Dice,
  ) {}

  byApiKey(): null {
    return null;
  }

  byId(tenantId: string): Tenant | null | Promise<Tenant | null> {
    const { registryAway, registrySlow, tenantLoadMs } = this.network.weather;
    const isAway = this.dice.chance(registryAway);
    const isSlow = this.dice.chance(registrySlow);
    const isKnown = tenantLoadMs === 0 || this.known.has(tenantId);
    if (isKnown && !isAway && !isSlow) return this.tenants.get(tenantId) ?? null;
    if (isAway || isSlow) return this.answerLate(tenantId, isAway);
    const waiting = this.wanted.get(tenantId) ?? Promise.withResolvers<Tenant | null>();
    this.wanted.set(tenantId, waiting);
    if (!this.isLoading) this.load();
    return waiting.promise;
  }

  byIdNow(tenantId: string): Tenant | null | undefined {
    const isKnown = this.network.weather.tenantLoadMs === 0 || this.known.has(tenantId);
    return isKnown ? (this.tenants.get(tenantId) ?? null) : undefined;
  }

  /** Has the effect of a changed plan. */
  forgetAll(): void {
    this.known.clear();
  }

  private load(): void {
    const batch = [...this.wanted].slice(0, TENANTS_AT_ONCE);
    for (const [tenantId] of batch) this.wanted.delete(tenantId);
    this.isLoading = true;
    const most = Math.max(1, Math.ceil(this.network.weather.tenantLoadMs));
    this.process.clock.setTimer(this.dice.between(Math.min(5, most), most), () => {
      for (const [tenantId, { resolve }] of batch) {
        this.known.add(tenantId);
        resolve(this.tenants.get(tenantId) ?? null);
      }
      this.isLoading = false;
      if (this.wanted.size > 0) this.load();
    });
  }

  private answerLate(tenantId: string, isAway: boolean): Promise<Tenant | null> {
    return new Promise((resolve, reject) => {
      const answer = () =>
        isAway ? reject(new UnavailableError("no registry")) : resolve(this.tenants.get(tenantId) ?? null);
      this.process.clock.setTimer(this.dice.skewed(2_000), answer);
    });
  }
}
