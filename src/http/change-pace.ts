import type { Clock } from "../domain/clock.ts";
import { remember } from "../domain/remember.ts";

/** Changes that one tenant may make at once, and then in every second, in one process. */
const BURST = 1_000;
export const CHANGES_PER_SECOND = 10;
/** Tenants that are remembered; of more, those that changed something longest ago have all of their burst again. */
const TENANTS_MAX = 10_000;

interface Bucket {
  /** Changes that were left at that time. */
  readonly left: number;
  readonly atMs: number;
}

/**
 * Bounds how often a tenant changes what is kept for it, whatever its plan. Each such change is several writes of the registry,
 * which all tenants share, and has every process read the tenant again.
 */
export class ChangePace {
  private readonly buckets = new Map<string, Bucket>();

  constructor(private readonly clock: Clock) {}

  /** Counts a change. Returns 0, or for how many seconds the tenant has to wait; the change is not counted then. */
  waitSeconds(tenantId: string): number {
    const nowMs = this.clock.monotonicMs();
    const { left, atMs } = this.buckets.get(tenantId) ?? { left: BURST, atMs: nowMs };
    const filled = Math.min(BURST, left + ((nowMs - atMs) / 1000) * CHANGES_PER_SECOND);
    if (filled < 1) return Math.ceil((1 - filled) / CHANGES_PER_SECOND);
    remember(this.buckets, { key: tenantId, value: { left: filled - 1, atMs: nowMs }, max: TENANTS_MAX });
    return 0;
  }
}
