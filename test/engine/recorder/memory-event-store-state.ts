import type { EventPage, EventQuery, StoredEventRow } from "../../../src/domain/jobs/event-store.ts";
import type { JobRecord } from "../../../src/domain/jobs/job.ts";
import type { FailedJob } from "../../../src/domain/jobs/retry.ts";

/**
 * An event store's state, as a machine without time or network of its own: every call takes effect and answers at once.
 *
 * L1. It answers as the event store in ClickHouse does: a model test runs both side by side. L2. A token's rows are
 * stored once; an event that came under two tokens is shown once.
 */
export class EventStoreState {
  private readonly tokens = new Set<string>();
  private readonly rows = new Map<string, Map<number, StoredEventRow>>();

  storeNow(token: string, rows: readonly StoredEventRow[]): void {
    if (this.tokens.has(token)) return;
    this.tokens.add(token);
    for (const row of rows) {
      const ofTenant = this.rows.get(row.tenantId) ?? new Map<number, StoredEventRow>();
      this.rows.set(row.tenantId, ofTenant.set(row.eventId, row));
    }
  }

  pageNow({ tenantId, fromEventId, toEventId, channel, type, limit }: EventQuery): EventPage {
    const found = this.newestFirst(tenantId).filter(
      (row) =>
        row.eventId >= fromEventId &&
        row.eventId < toEventId &&
        (channel === null ? row.channel !== "wallet" : row.channel === channel) &&
        (type === null || row.type === type),
    );
    const events = found.slice(0, limit).map((row) => ({
      eventId: row.eventId,
      type: row.type,
      result: row.result,
      jobId: row.jobId,
      channel: row.channel,
    }));
    return { events, hasMore: found.length > limit };
  }

  jobNow(tenantId: string, jobId: string): JobRecord | null {
    const rows = this.newestFirst(tenantId).filter((row) => row.jobId === jobId);
    const latest = rows.find(({ finished }) => finished !== null);
    if (latest === undefined || latest.finished === null) return null;
    const events = rows.toReversed().map(({ eventId, type, result }) => ({ eventId, type, result }));
    const { status, attempts, result, began } = latest.finished;
    const life = began === undefined ? {} : { began };
    return { jobId, tenantId, channel: latest.channel, status, attempts, result, events, ...life };
  }

  failedJobNow(tenantId: string, jobId: string): FailedJob | null {
    const job = this.jobNow(tenantId, jobId);
    if (job?.status !== "failed") return null;
    const rows = this.newestFirst(tenantId).filter((row) => row.jobId === jobId);
    const kept = rows.find(({ finished }) => finished?.kept !== undefined);
    return { job, content: kept?.finished?.kept ?? null };
  }

  private newestFirst(tenantId: string): StoredEventRow[] {
    const rows = [...(this.rows.get(tenantId)?.values() ?? [])];
    return rows.toSorted((a, b) => b.eventId - a.eventId);
  }
}
