import type { Clock, Timer } from "./clock.ts";
import type { Telemetry } from "./telemetry.ts";
import type { Json } from "./texts/json.ts";

const WINDOW_MS = 60_000;
/** Lines per window of one tenant, and of all. */
const TENANT_LINES_MAX = 20;
const LINES_MAX = 600;
/** Tenants that are counted by name in a window, and how many of them get a line with their count. */
const TENANTS_MAX = 10_000;
const SUMMARIES_MAX = 50;

interface Count {
  lines: number;
  more: number;
}

/**
 * Logs failures of tenants' messages, at `warn`.
 *
 * L1. However many messages fail, a minute has at most `LINES_MAX` lines, and one tenant `TENANT_LINES_MAX` of them.
 * L2. Omitted failures are counted; the counts are logged when the minute is over or the process stops.
 */
export class FailureLog {
  private readonly tenants = new Map<string, Count>();
  private readonly others: Count = { lines: 0, more: 0 };
  private lines = 0;
  private windowEnd: Timer | null = null;

  constructor(
    private readonly telemetry: Pick<Telemetry, "log">,
    private readonly clock: Clock,
  ) {}

  /** `fields` is called only if the line is written. */
  note(tenantId: string, message: string, fields: () => Readonly<Record<string, Json>>): void {
    this.windowEnd ??= this.clock.setTimer(WINDOW_MS, () => this.stop());
    const count = this.getCount(tenantId);
    if (this.lines >= LINES_MAX || count.lines >= TENANT_LINES_MAX) {
      count.more += 1;
      return;
    }
    count.lines += 1;
    this.lines += 1;
    this.telemetry.log("warn", message, { tenant_id: tenantId, ...fields() });
  }

  /** Logs the counts of omitted failures so far. Safe to call twice. */
  stop(): void {
    this.windowEnd?.cancel();
    this.windowEnd = null;
    const left = Array.from(this.tenants).filter(([, { more }]) => more > 0);
    left.sort(([, a], [, b]) => b.more - a.more);
    for (const [tenant_id, { more }] of left.slice(0, SUMMARIES_MAX)) {
      this.telemetry.log("warn", `and ${more} more failures of this tenant`, { tenant_id, more });
    }
    const rest = left.slice(SUMMARIES_MAX);
    const more = rest.reduce((sum, [, each]) => sum + each.more, this.others.more);
    if (more > 0) this.telemetry.log("warn", `and ${more} more failures of other tenants`, { more });
    this.tenants.clear();
    this.others.lines = 0;
    this.others.more = 0;
    this.lines = 0;
  }

  private getCount(tenantId: string): Count {
    const known = this.tenants.get(tenantId);
    if (known !== undefined) return known;
    if (this.tenants.size >= TENANTS_MAX) return this.others;
    const count = { lines: 0, more: 0 };
    this.tenants.set(tenantId, count);
    return count;
  }
}
