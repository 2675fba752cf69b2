import type { JobRecord } from "../../src/core/job.ts";
import type { LedgerRow } from "../../src/core/ledger.ts";
import type { Watch } from "./promises.ts";

/**
 * The ledger's tables in memory: an insert takes place at one instant, and one with a token that it has seen changes
 * nothing, whatever its rows, as in ClickHouse.
 */
export class SimLedger {
  /** Rows that a journal which forgot may hand out again, or have forgotten after they were handed out. */
  readonly excused = new Set<string>();
  private readonly tokens = new Map<string, string>();
  private readonly rowsByJob = new Map<string, LedgerRow[]>();
  private readonly keys = new Set<string>();
  private readonly newest = new Map<string, number>();

  constructor(
    private readonly watch: Watch,
    /** Whether the journal ever had this event. */
    private readonly hasHappened: (row: LedgerRow) => boolean,
    private readonly isClockSound: boolean,
  ) {}

  get size(): number {
    return this.keys.size;
  }

  insert(token: string, rows: readonly LedgerRow[]): void {
    const text = rows.map(keyOf).join(" ");
    const known = this.tokens.get(token);
    this.watch.demand(known === undefined || known === text, "tokenFrozen", () => `${token}: ${known}, then ${text}`);
    if (known !== undefined) return;
    this.tokens.set(token, text);
    for (const row of rows) this.add(row);
  }

  has(row: { readonly tenantId: string; readonly eventId: number }): boolean {
    return this.keys.has(keyOf(row));
  }

  hasKey(key: string): boolean {
    return this.keys.has(key);
  }

  job(tenantId: string, jobId: string): JobRecord | null {
    const rows = this.rowsByJob.get(`${tenantId} ${jobId}`) ?? [];
    const ending = rows.find((row) => row.finished !== null);
    if (ending === undefined || ending.finished === null) return null;
    const { status, attempts, result } = ending.finished;
    const events = rows.map(({ eventId, type, result: said }) => ({ eventId, type, result: said }));
    return { jobId, tenantId, channel: ending.channel, status, attempts, result, events };
  }

  private add(row: LedgerRow): void {
    const { watch } = this;
    const key = keyOf(row);
    const isExcused = this.excused.has(key);
    watch.demand(isExcused || !this.keys.has(key), "eventOnce", () => `${key} a second time`);
    watch.demand(this.hasHappened(row), "eventOnce", () => `${key} never happened`);
    const newest = this.newest.get(row.tenantId) ?? -1;
    const isInOrder = isExcused || row.eventId > newest || !this.isClockSound;
    watch.demand(isInOrder, "eventOrder", () => `${key} after ${newest}`);
    this.newest.set(row.tenantId, Math.max(newest, row.eventId));
    if (this.keys.has(key)) return;
    this.keys.add(key);
    const job = `${row.tenantId} ${row.jobId}`;
    const rows = this.rowsByJob.get(job);
    if (rows === undefined) this.rowsByJob.set(job, [row]);
    else rows.push(row);
  }
}

function keyOf({ tenantId, eventId }: { readonly tenantId: string; readonly eventId: number }): string {
  return `${tenantId}#${eventId}`;
}
