import type { Clock } from "../domain/clock.ts";
import { remember } from "../domain/remember.ts";

/** Changes that one tenant may make at once, and then in every second, in one process. */
const BURST = 1_000;
export const CHANGES_PER_SECOND = 10;
/** Tenants remembered. Beyond that, the tenant with the oldest change is forgotten and gets its full burst again. */
const TENANTS_MAX = 10_000;

interface Bucket {
  /** Changes that were left at that time. */
  readonly left: number;
  readonly atMs: number;
}

/**
 * Bounds how often a tenant changes its stored data, whatever its plan. Each change costs several writes to the registry, which
 * all tenants share, and makes every process reload the tenant.
 */
export class ChangePace {
  private readonly buckets = new Map<string, Bucket>();

  constructor(private readonly clock: Clock) {}

  /** Counts a change. Returns 0, or the seconds that the tenant has to wait; in that case the change is not counted. */
  waitSeconds(tenantId: string): number {
    const nowMs = this.clock.monotonicMs();
    const { left, atMs } = this.buckets.get(tenantId) ?? { left: BURST, atMs: nowMs };
    const filled = Math.min(BURST, left + ((nowMs - atMs) / 1000) * CHANGES_PER_SECOND);
    if (filled < 1) return Math.ceil((1 - filled) / CHANGES_PER_SECOND);
    remember(this.buckets, { key: tenantId, value: { left: filled - 1, atMs: nowMs }, max: TENANTS_MAX });
    return 0;
  }
}
