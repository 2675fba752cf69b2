/** Bounds of the event store, its pages and its exports. */
export const eventLimits = {
  /** A batch with more text than this is written by several inserts. */
  eventStoreInsertCharsMax: 8 * 1024 * 1024,

  // Reading.
  eventPageDefault: 100,
  eventPageMax: 500,
  eventWindowDaysMax: 31,
  eventStoreReadTimeoutMs: 10_000,
  /** Events shown per job, the oldest first. */
  jobEventsMax: 10_000,
  /** Queue entries searched for a page of a list of jobs. */
  jobsLookedUpMax: 1_000,
  /**
   * Tenants' reads of the event store (`CallTurns`), per process: a few more than the embedded engine runs at a time, and half
   * of the sockets to a server. The others stay free for the process's own reads.
   */
  historyReads: { all: 8, each: 2, waitingMax: 500, waitMs: 10_000, retrySeconds: 1 },
  /** Tenants' searches of the queue, per process: each keeps up to some ten thousand jobs in memory. */
  jobLists: { all: 4, each: 1, waitingMax: 4, waitMs: 5_000, retrySeconds: 2 },

  // Metrics of a tenant.
  metricDaysMax: 366,
  /** For metrics by the hour, and those that read the events themselves. */
  metricFineDaysMax: 31,
  /** Events that one answer reads if the sums do not suffice. */
  metricEventsMax: 2_000_000,
  metricRowsMax: 10_000,
  metricBytesMax: 512 * 1024 * 1024,
  /** Answers that read events, in flight at a time per process; one for a tenant. */
  metricReadsMax: 2,

  // Exports for analysts.
  /** In flight at a time per process: a piece of each is in memory, and in the embedded default each has a core. */
  exportsMax: 1,
  /** Days, including both ends. */
  exportDaysMax: 366,
  /** Rows per statement, and about how many bytes they should come to. */
  exportPieceRowsMax: 10_000,
  exportPieceBytesMax: 4 * 1024 * 1024,
  /** A client that stops reading for this long is disconnected. */
  exportStalledMs: 60_000,
} as const;
