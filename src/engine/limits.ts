/** Bounds of the engine alone. */
export const engineLimits = {
  idempotencyKeptMs: 24 * 60 * 60 * 1000,
  rateWindowMs: 60_000,
  /** The window is counted in slices of this length, the oldest of them whole: never more than the plan allows. */
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
  /** A pull that is answered within this was not on its way for long. */
  promptPullMs: 250,
  pullReadyMax: 256,
  /** An actor pulls more when fewer entries than this wait for a slot. */
  refillEntries: 48,
  /** Entries of a tenant queue that are pulled and not yet settled. */
  tenantQueueOpenMax: 256,
  /** Payloads that a process holds before their delivery; above it a tenant queue hands out one job at a time. */
  backlogBytesMax: 128 * 1024 * 1024,
  settleBatchMax: 256,
  /** Outcomes of all shards in one call: each takes Redis some 7 µs. */
  settleCallMax: 1_024,
  /** A job whose pull was asked for longer ago is looked up again: its recipient may have been suppressed meanwhile. */
  lookAgainMs: 1_000,
  /** Jobs that one call looks up. */
  lookCallMax: 256,
  /** Shards in one pull. */
  pullShardsMax: 64,
  /** Longest wait before a failed queue call is tried again. */
  queueRetryMs: 1_000,
  /** Longest wait between two tries of giving back what a failed job took. */
  giveBackRetryMsMax: 5_000,
  /** Wait before a tenant is looked up again in a registry that does not answer. */
  tenantRetryMs: 500,
  /**
   * A day's allowance is taken in pieces, at most a fiftieth of it and at most this many: a crash loses the unused
   * units.
   */
  allowancePieceMax: 64,
  /** How long the count of a day's allowance is kept: longer than any clock can take that day for today. */
  allowanceKeptMs: 2 * 24 * 60 * 60 * 1000,
  /** A tenant queue that its pace or a used-up allowance holds is checked this often: the operator may have raised it. */
  planLookMs: 60_000,
  /** How often an actor whose tenant is paused looks whether it still is. */
  pausedLookMs: 500,
  /**
   * How long after a purge a tenant queue that rests is still read for purged jobs: longer than a job waits for its
   * retries. Later ones end when it moves again.
   */
  purgeSweepMs: 24 * 60 * 60 * 1000,
  idlePollMs: 250,
  /** How long queued jobs can stay unknown when the answer that named them to the owner got lost. */
  surveyMs: 10_000,

  // Retrying.
  retryBaseMs: 1_000,
  retryFactor: 2,
  retryDelayMsMax: 15 * 60 * 1000,
  /** How long a job waits for its retries, all of them together. */
  retryWaitedMsMax: 24 * 60 * 60 * 1000,
  /** References are written by the hour and leave by the hour. */
  providerRefHourMs: 60 * 60 * 1000,

  // Recording.
  /** Rows that one call freezes in all. */
  recordRowsMax: 10_000,
  recordEntriesMax: 4_000,
  /** Pieces of a batch: each shard's mark names them all. */
  recordPiecesMax: 32,
  /** First and longest wait before a batch that could not be recorded is tried again. */
  recordRetryMs: 250,
  recordRetryMsMax: 5_000,
  recordBytesMax: 8 * 1024 * 1024,
  /** Finished jobs that are noted together, and leave Redis together. */
  leaveTogetherMax: 64,
  /** Minimum of due jobs that a call of `record` removes, if there are as many: a backlog shrinks on idle calls. */
  leaveJobsMin: 512,
  /** How long a job stays readable in Redis once it is final and in the event store. */
  jobKeptMs: 15 * 60 * 1000,
  /** Opens and clicks that a process remembers until the queue has them; further ones are not recorded. */
  engagementsPendingMax: 10_000,
  /**
   * Jobs that have left the queue and are looked up for reports on them, per process: a campaign is opened by thousands in a minute,
   * and their reads must leave some of the event store to whoever reads their history.
   */
  reportReads: { all: 4, each: 2 },

  // Contents of failed jobs, kept in case of a retry.
  /** Longer ones are not kept. */
  keptBytesMax: 1024 * 1024,
  /** In a shard's outbox, until the event store has them; one tenant has half of it at most. */
  keptOutboxBytesMax: 16 * 1024 * 1024,
  /** Of a tenant, in `keptDayMs`. */
  keptDayBytesMax: 64 * 1024 * 1024,
  keptDayMs: 24 * 60 * 60 * 1000,
  /** Retries that one call makes. */
  retryBatchJobsMax: 64,
  retryBatchBytesMax: 1024 * 1024,

  // Operators' look through the queue, for each place: a tenant queue, the parked jobs and the outbox of its shard.
  surveyEntriesMax: 10_000,
  /** In an erasure: a tenant's share of the queue, as plans have it, is smaller. */
  eraseEntriesMax: 2_100_000,
  /** Of each tenant queue, in a look through those of all tenants. */
  surveyAnywhereQueueMax: 1_000,
  /** Of one tenant queue, to count the jobs before one. */
  surveyAheadMax: 2_000,
  /** Of an outbox, to see whether a tenant is in it: the recorder of a longer one is behind. */
  surveyUnrecordedMax: 1_000,
  /** About how much one call reads, and its most entries. */
  surveyBytes: 1024 * 1024,
  surveyStepMax: 256,
} as const;
