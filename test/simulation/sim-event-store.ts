import type { StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import type { JobRecord } from "../../src/domain/jobs/job.ts";
import type { FailedJob } from "../../src/domain/jobs/retry.ts";
import { EventStoreState } from "../engine/recorder/memory-event-store-state.ts";
import type { Watch } from "./promises.ts";

/**
 * The event store's state, with the books kept beside it: each insert is checked at the instant at which it takes
 * place. It answers as ClickHouse does; a model test holds the state to that.
 */
export class SimEventStore {
  /** Rows that a queue which forgot may hand out again, or have forgotten after they were handed out. */
  readonly excused = new Set<string>();
  private readonly tokens = new Map<string, string>();
  private readonly state = new EventStoreState();
  private readonly keys = new Set<string>();
  private readonly newest = new Map<string, number>();

  constructor(
    private readonly watch: Watch,
    /** Whether the queue ever had this event. */
    private readonly hasHappened: (row: StoredEventRow) => boolean,
    private readonly isClockSound: boolean,
  ) {}

  get size(): number {
    return this.keys.size;
  }

  insert(token: string, rows: readonly StoredEventRow[]): void {
    const text = rows.map(formatKey).join(" ");
    const known = this.tokens.get(token);
    const isFrozen = known === undefined || known === text || !this.isClockSound;
    this.watch.demand(isFrozen, "tokenFrozen", () => `${token}: ${known}, then ${text}`);
    this.state.storeNow(token, rows);
    if (known !== undefined) return;
    this.tokens.set(token, text);
    for (const row of rows) this.check(row);
  }

  has(row: { readonly tenantId: string; readonly eventId: number }): boolean {
    return this.keys.has(formatKey(row));
  }

  hasKey(key: string): boolean {
    return this.keys.has(key);
  }

  job(tenantId: string, jobId: string): JobRecord | null {
    return this.state.jobNow(tenantId, jobId);
  }

  failedJob(tenantId: string, jobId: string): FailedJob | null {
    return this.state.failedJobNow(tenantId, jobId);
  }

  private check(row: StoredEventRow): void {
    const { watch } = this;
    const key = formatKey(row);
    const isExcused = this.excused.has(key);
    watch.demand(isExcused || !this.keys.has(key), "eventOnce", () => `${key} a second time`);
    watch.demand(this.hasHappened(row), "eventOnce", () => `${key} never happened`);
    const newest = this.newest.get(row.tenantId) ?? -1;
    const isInOrder = isExcused || row.eventId > newest || !this.isClockSound;
    watch.demand(isInOrder, "eventOrder", () => `${key} after ${newest}`);
    this.newest.set(row.tenantId, Math.max(newest, row.eventId));
    this.keys.add(key);
  }
}

function formatKey({ tenantId, eventId }: { readonly tenantId: string; readonly eventId: number }): string {
  return `${tenantId}#${eventId}`;
}
