import { UnavailableError } from "../domain/errors.ts";

/** The history of jobs that have left the queue: a process without an event store cannot read it. */
export const NO_HISTORY = {
  job: () => Promise.reject(new UnavailableError("this process has no event store: it needs CLICKHOUSE_URL")),
};

/** For a process that only delivers and has no ClickHouse server to ask. */
export const NO_EVENT_STORE = {
  writer: () => ({ write: () => Promise.reject(new UnavailableError("this process has no event store")) }),
  reader: {
    page: () => Promise.reject(new UnavailableError("this process has no event store")),
    job: (_tenantId: string, _jobId: string) => Promise.resolve(null),
    months: () => Promise.reject(new UnavailableError("this process has no event store")),
    minutes: () => Promise.reject(new UnavailableError("this process has no event store")),
    sumsSince: () => Promise.reject(new UnavailableError("this process has no event store")),
  },
  feed: {
    settleMs: 0,
    after: () => Promise.reject(new UnavailableError("this process has no event store")),
    marks: () => Promise.reject(new UnavailableError("this process has no event store")),
  },
  finishedJobs: () => ({
    finished: () => Promise.reject(new UnavailableError("this process has no event store")),
    finishedJob: () => Promise.reject(new UnavailableError("this process has no event store")),
    finishedAnywhere: () => Promise.reject(new UnavailableError("this process has no event store")),
    findOwner: () => Promise.reject(new UnavailableError("this process has no event store")),
    count: () => Promise.reject(new UnavailableError("this process has no event store")),
    laterEvents: () => Promise.reject(new UnavailableError("this process has no event store")),
  }),
  failedJobs: () => ({
    failedJobs: (_tenantId: string, _jobIds: readonly string[]) =>
      Promise.reject(new UnavailableError("this process has no event store")),
  }),
  erasure: () => ({ eraseRecipient: () => Promise.reject(new UnavailableError("this process has no event store")) }),
  removal: { removeHistory: () => Promise.reject(new UnavailableError("this process has no event store")) },
  metrics: {
    isFromSums: () => true,
    metrics: () => Promise.reject(new UnavailableError("this process has no event store")),
  },
  mailHistory: { mailCounts: () => Promise.reject(new UnavailableError("this process has no event store")) },
  operatorSums: {
    failures: () => Promise.reject(new UnavailableError("this process has no event store")),
    spans: () => Promise.reject(new UnavailableError("this process has no event store")),
  },
  exports: { open: () => Promise.reject(new UnavailableError("this process has no event store")) },
};
