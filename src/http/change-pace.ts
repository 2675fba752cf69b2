import type { Clock } from "../domain/clock.ts";
import { remember } from "../domain/remember.ts";

/** What one tenant may change in a window, in one process. */
export const CHANGES_MAX = 600;
const WINDOW_MS = 60_000;
/** Tenants that are remembered; of more, those that began a window longest ago begin a new one. */
const TENANTS_MAX = 10_000;

/**
 * Bounds how often a tenant changes what is kept for it, whatever its plan. Each such change is several writes of the registry,
 * which all tenants share, and has every process read the tenant again.
 */
export class ChangePace {
  private readonly windows = new Map<string, { readonly endsMs: number; changes: number }>();

  constructor(private readonly clock: Clock) {}

  /** Counts a change. Returns 0, or for how many seconds the tenant has to wait; the change is not counted then. */
  waitSeconds(tenantId: string): number {
    const nowMs = this.clock.monotonicMs();
    const window = this.windows.get(tenantId);
    if (window === undefined || window.endsMs <= nowMs) {
      remember(this.windows, { key: tenantId, value: { endsMs: nowMs + WINDOW_MS, changes: 1 }, max: TENANTS_MAX });
      return 0;
    }
    if (window.changes >= CHANGES_MAX) return Math.ceil((window.endsMs - nowMs) / 1000);
    window.changes += 1;
    return 0;
  }
}
