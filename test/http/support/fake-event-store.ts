import type { EventType } from "../../../src/domain/jobs/event.ts";
import type {
  EventFeed,
  EventPage,
  EventPosition,
  EventQuery,
  EventReader,
  EventSums,
  EventsAfter,
  MonthlyEvents,
  MonthsQuery,
  TenantEvent,
} from "../../../src/domain/jobs/event-store.ts";
import type { JobRecord } from "../../../src/domain/jobs/job.ts";
import type {
  AllFinishedJobs,
  EndedJob,
  FinishedJobSummary,
  FinishedJobs,
  FinishedJobsPage,
  LaterEvents,
} from "../../../src/domain/jobs/job-search.ts";
import type { ErasedHistory, HistoryErasure } from "../../../src/domain/tenants/erasure.ts";

/** An event store in memory that passes the conformance tests of the real one (`event-reader.test.ts`). */
export class FakeEventStore
  implements EventReader, EventFeed, EventSums, FinishedJobs, AllFinishedJobs, LaterEvents, HistoryErasure
{
  readonly events: (TenantEvent & { readonly tenantId: string })[] = [];
  readonly jobs: JobRecord[] = [];
  readonly monthly: MonthlyEvents[] = [];
  /** Rejects every call, as an unavailable event store does. */
  failure: Error | null = null;
  readonly queries: EventQuery[] = [];
  readonly settleMs = 0;
  /** Reads of clients that follow the events. */
  follows = 0;

  async page(query: EventQuery): Promise<EventPage> {
    if (this.failure !== null) throw this.failure;
    this.queries.push(query);
    const matching = this.events
      .filter(({ tenantId }) => tenantId === query.tenantId)
      .filter(({ eventId }) => eventId >= query.fromEventId && eventId < query.toEventId)
      .filter(({ channel }) => (query.channel === null ? channel !== "wallet" : channel === query.channel))
      .filter(({ type }) => query.type === null || type === query.type)
      .sort((one, other) => other.eventId - one.eventId);
    return { events: matching.slice(0, query.limit), hasMore: matching.length > query.limit };
  }

  async after({ tenantId, afterEventId, throughEventId, ...query }: EventsAfter): Promise<readonly TenantEvent[]> {
    this.follows += 1;
    if (this.failure !== null) throw this.failure;
    return this.events
      .filter((event) => event.tenantId === tenantId)
      .filter(({ eventId }) => eventId > afterEventId && eventId <= throughEventId)
      .filter(({ channel }) => query.channels?.includes(channel) ?? true)
      .filter(({ type }) => query.types?.includes(type) ?? true)
      .sort((one, other) => one.eventId - other.eventId)
      .slice(0, query.limit);
  }

  async marks(positions: readonly EventPosition[]): Promise<ReadonlyMap<string, number>> {
    this.follows += 1;
    if (this.failure !== null) throw this.failure;
    const marks = new Map<string, number>();
    for (const { tenantId, eventId } of this.events) {
      const position = positions.find((one) => one.tenantId === tenantId);
      if (position === undefined || eventId <= position.afterEventId) continue;
      marks.set(tenantId, Math.max(eventId, marks.get(tenantId) ?? 0));
    }
    return marks;
  }

  async months({ tenantIds, from, to }: MonthsQuery): Promise<readonly MonthlyEvents[]> {
    if (this.failure !== null) throw this.failure;
    return this.monthly.filter(({ tenantId, month }) => tenantIds.includes(tenantId) && month >= from && month <= to);
  }

  async finished(): Promise<FinishedJobsPage> {
    if (this.failure !== null) throw this.failure;
    return { jobs: [], moreBelow: null };
  }

  finishedAnywhere(): Promise<FinishedJobsPage> {
    return this.finished();
  }

  async eraseRecipient(): Promise<ErasedHistory> {
    if (this.failure !== null) throw this.failure;
    return { finishedJobs: 0, events: 0, payloads: 0, isComplete: true };
  }

  async findOwner(): Promise<string | null> {
    if (this.failure !== null) throw this.failure;
    return null;
  }

  async finishedJob(): Promise<FinishedJobSummary | null> {
    if (this.failure !== null) throw this.failure;
    return null;
  }

  async laterEvents(jobs: readonly EndedJob[]): Promise<ReadonlyMap<string, readonly EventType[]>> {
    if (this.failure !== null) throw this.failure;
    return new Map(
      jobs.map(({ jobId, endEventId }) => [
        jobId,
        this.events.filter((each) => each.jobId === jobId && each.eventId > endEventId).map(({ type }) => type),
      ]),
    );
  }

  async count(): Promise<number> {
    if (this.failure !== null) throw this.failure;
    return 0;
  }

  async job(tenantId: string, jobId: string): Promise<JobRecord | null> {
    if (this.failure !== null) throw this.failure;
    return this.jobs.find((job) => job.tenantId === tenantId && job.jobId === jobId) ?? null;
  }
}
