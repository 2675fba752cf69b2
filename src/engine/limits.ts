/** Bounds of the engine alone. */
export const engineLimits = {
  idempotencyKeptMs: 24 * 60 * 60 * 1000,
  rateWindowMs: 60_000,
  /**
   * The window is counted in slices of this length, and the oldest counts whole, so requests never exceed the plan.
   */
  rateSliceMs: 1_000,

  // Accepting.
  acceptBatchJobsMax: 256,
  acceptBatchBytesMax: 4 * 1024 * 1024,
  queueStartMs: 10_000,
  /** Requests that wait to enter the queue; more are refused. */
  commitQueueMax: 20_000,
  /** A request that has waited this long for its turn is refused. */
  commitWaitMs: 5_000,

  // Delivering.
  /** A tenant's deliveries in flight on a channel. */
  tenantWindowMax: 64,
  pullEntriesPerTenantQueueMax: 64,
  pullTenantQueuesMax: 64,
  pullDueMax: 256,
  /** How far a shard's time may be from its owner's estimate: more than a call takes, less than most retries' waits. */
  shardTimeSlackMs: 1_000,
  /** The call of a pull that is answered within this time was not delayed. */
  promptPullMs: 250,
  pullReadyMax: 256,
  /** An actor pulls more jobs when fewer entries than this wait for a slot. */
  refillEntries: 48,
  /** Entries of a tenant queue that are pulled and not yet settled. */
  tenantQueueOpenMax: 256,
  /** Payloads that a process holds before their delivery; above it a tenant queue hands out one job at a time. */
  backlogBytesMax: 128 * 1024 * 1024,
  settleBatchMax: 256,
  /** Outcomes of all shards in one call: each takes Redis some 7 µs. */
  settleCallMax: 1_024,
  /**
   * A job whose pull was requested longer ago is looked up again: its recipient may have been suppressed meanwhile.
   */
  lookAgainMs: 1_000,
  /** Jobs that one call looks up. */
  lookCallMax: 256,
  /** Shards in one pull. */
  pullShardsMax: 64,
  /** Waits before a failed queue call is tried again. */
  queueRetry: { firstMs: 50, maxMs: 1_000 },
  /** Waits between tries of giving back the resources of a failed job. */
  giveBackRetry: { firstMs: 50, maxMs: 5_000 },
  /** Waits before a tenant is looked up again in a registry that does not answer. */
  tenantRetry: { firstMs: 500, maxMs: 5_000 },
  /**
   * A day's allowance is taken in pieces, at most a fiftieth of it and at most this many: a crash loses the unused
   * units.
   */
  allowancePieceMax: 64,
  /** How long the count of a day's allowance is kept: longer than any clock's error about the current day. */
  allowanceKeptMs: 2 * 24 * 60 * 60 * 1000,
  /**
   * A tenant queue that is limited by its pace or a used-up allowance is checked this often: the operator may have
   * raised it.
   */
  planLookMs: 60_000,
  /** How often an actor checks whether its tenant is still paused. */
  pausedLookMs: 500,
  /**
   * How long after a purge a resting tenant queue is still read for purged jobs: longer than a job waits for its
   * retries. Later ones end when it resumes.
   */
  purgeSweepMs: 24 * 60 * 60 * 1000,
  idlePollMs: 250,
  /** How long queued jobs can stay unknown when the answer that named them to the owner got lost. */
  surveyMs: 10_000,

  // Retrying.
  /** Full jitter spreads out jobs that failed together. */
  jobRetry: { firstMs: 1_000, factor: 2, maxMs: 15 * 60 * 1000, jitter: 1 },
  /** How long a job waits for its retries, all of them together. */
  retryWaitedMsMax: 24 * 60 * 60 * 1000,
  /** References are grouped, and expire, by the hour in which they were written. */
  providerRefHourMs: 60 * 60 * 1000,

  // Recording.
  /** Total rows that one call freezes. */
  recordRowsMax: 10_000,
  recordEntriesMax: 4_000,
  /** Pieces of a batch: each shard's mark names them all. */
  recordPiecesMax: 32,
  /** Waits before a batch that could not be recorded is tried again. */
  recordRetry: { firstMs: 250, maxMs: 5_000 },
  recordBytesMax: 8 * 1024 * 1024,
  /** Finished jobs that are listed together, and leave Redis together. */
  leaveTogetherMax: 64,
  /** Due jobs that a call of `record` removes at least, if there are as many: a backlog shrinks even on idle calls. */
  leaveJobsMin: 512,
  /** How long a job stays readable in Redis once it is final and in the event store. */
  jobKeptMs: 15 * 60 * 1000,
  /** Opens and clicks that a process remembers until the queue has them; further ones are not recorded. */
  engagementsPendingMax: 10_000,
  /**
   * Concurrent lookups, per process, of jobs that have left the queue and are reported on: a campaign is opened by
   * thousands in a minute, and the event store must keep capacity for readers of its history.
   */
  reportReads: { all: 4, each: 2 },

  // Contents of failed jobs, kept in case of a retry.
  /** Longer ones are not kept. */
  keptBytesMax: 1024 * 1024,
  /** In a shard's outbox, until the event store has them; one tenant has half of it at most. */
  keptOutboxBytesMax: 16 * 1024 * 1024,
  /** Per tenant, within `keptDayMs`. */
  keptDayBytesMax: 64 * 1024 * 1024,
  keptDayMs: 24 * 60 * 60 * 1000,
  /** Retries that one call makes. */
  retryBatchJobsMax: 64,
  retryBatchBytesMax: 1024 * 1024,

  // Most entries that an operators' search reads, each from a tenant queue, the parked jobs and the outbox of its
  // shard.
  surveyEntriesMax: 10_000,
  /** In an erasure: more than a tenant's share of the queue on any plan. */
  eraseEntriesMax: 2_100_000,
  /** Per tenant queue, in a search through all tenants' queues. */
  surveyAnywhereQueueMax: 1_000,
  /** Per tenant queue, to count the jobs before one. */
  surveyAheadMax: 2_000,
  /** Entries of an outbox that are searched for a tenant: if it has more, its recorder is behind. */
  surveyUnrecordedMax: 1_000,
  /** About how many bytes one call reads, and its most entries. */
  surveyBytes: 1024 * 1024,
  surveyStepMax: 256,
} as const;
