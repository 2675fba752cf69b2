import type { Clock } from "../domain/clock.ts";
import { remember } from "../domain/remember.ts";

/** What a tenant's own calls may leave in the audit log in a UTC day, by one process. */
interface DayShare {
  readonly day: number;
  /** Rows of their own that are left, of refused calls and of all others. */
  left: Record<"refused" | "others", number>;
  /** What calls are summed up by → the id of the row that stands for them. */
  readonly sums: Map<string, number>;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** A refused call has changed nothing, and its body can name anything: it takes up to 2.4 KB. */
const ROWS_A_DAY = { refused: 100, others: 10_000 };
/** Of more tenants, those that called longest ago have all of their share again. */
const TENANTS_MAX = 10_000;

/**
 * Bounds what a tenant leaves in the audit log: its calls have a row each, up to a share of the day; further ones are counted in one
 * row for each operation and status, so none goes without a row.
 */
export class AuditShares {
  private readonly days = new Map<string, DayShare>();

  constructor(private readonly clock: Clock) {}

  /** The row that a call is counted in, which ended so and has the row `id`; null: it keeps that one. */
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
