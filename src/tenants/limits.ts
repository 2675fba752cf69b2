/** Bounds on the limits that operators may set. */
export const planLimits = {
  requestsPerMinuteMax: 60_000_000,
  deliveriesPerSecondMax: 100_000,
  /** One tenant's share of the queue: unfinished jobs, and the bytes of their payloads. */
  queuedJobsMax: 1_000_000_000,
  queuedBytesMax: 1024 ** 4,
  holdHoursMax: 7 * 24,
  snapshotStaleMsMax: 1_000,
} as const;

/** Bounds on resources that a tenant creates itself. Operators may exceed them. */
export const ownLimits = {
  keysMax: 100,
  templatesMax: 1_000,
  /** Every process that serves a tenant has all of its templates in memory. */
  templateBytesMax: 8 * 1024 * 1024,
  /** Entries from recipients, bounces and operators do not count. */
  suppressionsMax: 1_000_000,
} as const;
