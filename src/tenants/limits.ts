/** Bounds of what operators may set. */
export const planLimits = {
  requestsPerMinuteMax: 60_000_000,
  deliveriesPerSecondMax: 100_000,
  /** One tenant's share of the queue: unfinished jobs, and the bytes of their payloads. */
  queuedJobsMax: 1_000_000_000,
  queuedBytesMax: 1024 ** 4,
  holdHoursMax: 7 * 24,
  snapshotStaleMsMax: 1_000,
} as const;
