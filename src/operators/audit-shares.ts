import type { Clock } from "../domain/clock.ts";
import { remember } from "../domain/remember.ts";

/** Rows that a tenant's own calls may add to the audit log per UTC day and process. */
interface DayShare {
  readonly day: number;
  /** Remaining rows, for refused calls and for all others. */
  left: Record<"refused" | "others", number>;
  /** The key by which calls are summed up → the id of their common row. */
  readonly sums: Map<string, number>;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** A refused call has no effect, and its body can name anything: it takes up to 2.4 KB. */
const ROWS_A_DAY = { refused: 100, others: 10_000 };
/** Tenants remembered. Beyond that, the tenant with the oldest call is forgotten and gets its full share again. */
const TENANTS_MAX = 10_000;

/**
 * Bounds a tenant's rows in the audit log: each call gets its own row up to a daily share; further ones are counted in one row
 * per operation and status, so every call is recorded.
 */
export class AuditShares {
  private readonly days = new Map<string, DayShare>();

  constructor(private readonly clock: Clock) {}

  /** Returns the common row in which the ended call with the row `id` is counted; null: it keeps its own. */
  sumFor(tenantId: string, { action, status, id }: { action: string; status: number; id: number }): number | null {
    const share = this.findShare(tenantId);
    const kind = status >= 400 && status < 500 ? "refused" : "others";
    if (share.left[kind] > 0) {
      share.left[kind] -= 1;
      return null;
    }
    const what = `${action} ${status}`;
    const sum = share.sums.get(what) ?? null;
    if (sum === null) share.sums.set(what, id);
    return sum;
  }

  private findShare(tenantId: string): DayShare {
    const day = Math.floor(this.clock.nowMs() / DAY_MS);
    const known = this.days.get(tenantId);
    const share = known?.day === day ? known : { day, left: { ...ROWS_A_DAY }, sums: new Map<string, number>() };
    remember(this.days, { key: tenantId, value: share, max: TENANTS_MAX });
    return share;
  }
}
