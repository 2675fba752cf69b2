import type { Clock } from "../domain/clock.ts";
import { Pace } from "../domain/pace.ts";
import { remember } from "../domain/remember.ts";

/** Changes that one tenant may make at once, and then in every second, in one process. */
const BURST = 1_000;
export const CHANGES_PER_SECOND = 10;
/** Tenants remembered. Beyond that, the tenant with the oldest change is forgotten and gets its full burst again. */
const TENANTS_MAX = 10_000;

/**
 * Bounds how often a tenant changes its stored data, whatever its plan. Each change costs several writes to the registry, which
 * all tenants share, and makes every process reload the tenant.
 */
export class ChangePace {
  private readonly paces = new Map<string, Pace>();

  constructor(private readonly clock: Clock) {}

  /** Counts a change. Returns 0, or the seconds that the tenant has to wait; in that case the change is not counted. */
  waitSeconds(tenantId: string): number {
    const nowMs = this.clock.monotonicMs();
    const pace = this.paces.get(tenantId) ?? new Pace((BURST / CHANGES_PER_SECOND) * 1000);
    const waitMs = pace.waitMs(nowMs, CHANGES_PER_SECOND);
    if (waitMs > 0) return Math.ceil(waitMs / 1000);
    pace.take(nowMs, CHANGES_PER_SECOND);
    remember(this.paces, { key: tenantId, value: pace, max: TENANTS_MAX });
    return 0;
  }
}
