import type { EventMetrics } from "../domain/jobs/event-metrics.ts";
import type { EventReader } from "../domain/jobs/event-store.ts";
import type { FinishedJobs } from "../domain/jobs/job-search.ts";
import type { CallTurns } from "../http/call-turns.ts";

/** Tenants' reads of the event store. */
export interface ReadHistory {
  readonly eventStore: EventReader;
  readonly finishedJobs: Pick<FinishedJobs, "finished">;
  readonly eventMetrics: EventMetrics;
}

/** Wraps the reads so that tenants take turns: few statements run at a time, and no tenant can occupy them all. */
export function historyInTurn({ eventStore, finishedJobs, eventMetrics }: ReadHistory, turns: CallTurns) {
  return {
    eventStore: eventStoreInTurn(eventStore, turns),
    finishedJobs: {
      finished: (tenantId, filter, limit) =>
        turns.inTurn(tenantId, () => finishedJobs.finished(tenantId, filter, limit)),
    },
    eventMetrics: {
      isFromSums: (query) => eventMetrics.isFromSums(query),
      metrics: (query) => turns.inTurn(query.tenantId, () => eventMetrics.metrics(query)),
    },
  } satisfies ReadHistory;
}

export function eventStoreInTurn(eventStore: EventReader, turns: CallTurns): EventReader {
  return {
    page: (query) => turns.inTurn(query.tenantId, () => eventStore.page(query)),
    job: (tenantId, jobId) => turns.inTurn(tenantId, () => eventStore.job(tenantId, jobId)),
  };
}
