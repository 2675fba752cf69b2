import { assert } from "./errors.ts";

/** Every bound of the engine, next to the bounds that it must agree with. */
export const limits = {
  // HTTP API.
  requestBodyBytesMax: 10 * 1024 * 1024,
  inlineHtmlBytesMax: 524_288,
  addressBytesMax: 254,
  subjectCharsMax: 998,
  idempotencyKeyCharsMax: 255,
  idempotencyKeptMs: 24 * 60 * 60 * 1000,
  rateWindowMs: 60_000,
  /** The window is counted in slices of this length, the oldest of them whole: never more than the plan allows. */
  rateSliceMs: 1_000,

  // Chat messages. The provider's own bounds for a template's name and a text parameter of its body.
  chatTemplateNameCharsMax: 512,
  chatParamCharsMax: 1_024,
  /** More than any template body can name within its 1,024 characters. */
  chatParamsMax: 200,

  // Passes.
  passSerialCharsMax: 200,
  passTextCharsMax: 20_000,
  /** Fields at one place of a pass: more than any device shows. */
  passFieldsMax: 100,
  /** The content of a pass as JSON, without its images. */
  passContentCharsMax: 256 * 1024,
  passImageBytesMax: 2 * 1024 * 1024,
  passImagePixelsMax: 4_096,
  /** The content of a pass template, including images: every process keeps it in memory. */
  passTemplateCharsMax: 1024 * 1024,
  /**
   * How long a request waits for another one with its Idempotency-Key that has stored its pass but not queued its job.
   */
  passTwinMs: 10_000,
  /** Longer than an accept can be in flight: a pass whose job is unknown by then has none. */
  passUnfinishedMs: 15 * 60_000,
  passSweepMs: 60_000,

  // Bounds for operators.
  /** Aliases of one tenant: its snapshot contains all of them. */
  aliasesMax: 5_000,
  requestsPerMinuteMax: 1_000_000,
  deliveriesPerSecondMax: 100_000,
  /** One tenant's share of the queue: unfinished jobs, and the bytes of their payloads. */
  queuedJobsMax: 1_000_000_000,
  queuedBytesMax: 1024 ** 4,
  holdHoursMax: 7 * 24,

  // Accepting.
  acceptBatchJobsMax: 256,
  acceptBatchBytesMax: 4 * 1024 * 1024,
  queueStartMs: 10_000,
  /** Requests that wait to enter the queue; more are refused. */
  commitQueueMax: 20_000,
  /** A request that has waited this long for its turn is refused. */
  commitWaitMs: 5_000,
  /** How long an accept whose effect is unknown is repeated before the caller is told. */
  acceptRetryMs: 5_000,

  // Leases.
  leaseTtlMs: 10_000,
  leaseRenewMs: 3_000,
  /** Subtracted from a lease's end: later, no provider call may start. */
  leaseMarginMs: 1_500,
  leaseCompeteMs: 1_000,
  takeoverMsMax: 15_000,

  // Delivering.
  /** A tenant's deliveries in flight on a channel. */
  tenantWindowMax: 64,
  pullEntriesPerBoxMax: 64,
  pullBoxesMax: 64,
  pullDueMax: 256,
  /** How far a shard's time may be from its owner's estimate: more than a call takes, less than any retry's wait. */
  shardTimeSlackMs: 1_000,
  pullReadyMax: 256,
  /** An actor pulls more when fewer entries than this wait for a slot. */
  refillEntries: 48,
  /** Entries of a tenant queue that are pulled and not yet settled. */
  boxOpenMax: 256,
  /** Payloads that a process holds before their delivery; above it a tenant queue hands out one job at a time. */
  backlogBytesMax: 128 * 1024 * 1024,
  settleBatchMax: 256,
  /** Outcomes of all shards in one call: each takes Redis some 7 µs. */
  settleCallMax: 1_024,
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
  /** A tenant queue whose allowance is used up is checked this often: the operator may have raised it. */
  allowanceLookMs: 60_000,
  deliveryTimeoutMs: 60_000,
  /** Longest wait for a channel that ignores the abort of its delivery. */
  abortGraceMs: 1_000,
  /** How much time's worth of deliveries a paced tenant may send at once after a pause. */
  paceBurstMs: 100,
  idlePollMs: 250,
  /** How long queued jobs can stay unknown when the answer that named them to the owner got lost. */
  surveyMs: 10_000,
  /** On a drain, deliveries still in flight are aborted after this time, and given up at `drainMs`. */
  drainAbortMs: 6_000,
  drainMs: 8_000,

  // Retrying.
  retryBaseMs: 1_000,
  retryFactor: 2,
  retryDelayMsMax: 15 * 60 * 1000,
  /** How long a job waits for its retries, all of them together. */
  retryWaitedMsMax: 24 * 60 * 60 * 1000,
  attemptsMax: 12,

  // Wallet.
  /** Passes that a process handles at one time. */
  walletDeliveriesMax: 32,
  /** Passes for which the process remembers the version that it pushed to their devices. */
  pushedVersionsRememberedMax: 10_000,
  /** From a push to the end of its answer. */
  apnsRequestMs: 10_000,
  /** A connection that was idle for this long is pinged, and has `apnsPingMs` to answer. */
  apnsIdleMs: 30_000,
  apnsPingMs: 2_000,
  /** First and longest wait after a connection could not be opened. */
  apnsReconnectMs: 500,
  apnsReconnectMsMax: 20_000,
  /** How often a push moves to the next connection because the last one ended, before it waits. */
  apnsMovesMax: 5,
  /** Certificates, one connection each. */
  apnsSessionsMax: 256,
  apnsConcurrencyMax: 200,
  /** Pushes that a process remembers; devices miss further ones and find out by themselves. */
  apnsPendingMax: 50_000,
  /** How long an update waits for its pushes; they continue without it. */
  apnsFirstRoundMs: 10_000,
  /** How long a certificate is not used after Apple has refused it. */
  apnsPauseMs: 5 * 60_000,
  apnsAnswerCharsMax: 4_096,

  // Google's wallet.
  /** Calls per second that Google accepts for one issuer (its FAQ for issuers). */
  googleCallsPerSecond: 20,
  /** Jobs of an issuer that wait for their turn: a tenant's window and more; others come back later. */
  googleJobsWaitingMax: 100,
  /** API callers that wait for their turn; others are told to try again. */
  googleRequestsWaitingMax: 20,
  googleCallTimeoutMs: 15_000,
  /** How long an API caller waits for Google, all calls together. */
  googleRequestTimeoutMs: 20_000,
  googleAnswerBytesMax: 4 * 1024 * 1024,
  googleTokenTimeoutMs: 10_000,
  /** Access tokens last an hour; they are no longer used this long before their end. */
  googleTokenMarginMs: 5 * 60_000,
  /** Service accounts whose access tokens a process holds, and issuers whose pace it knows. */
  googleAccountsMax: 1_000,
  /** Objects whose insertion got no answer, remembered in order to recognise them later. */
  googleInsertsRememberedMax: 1_000,
  /** A larger object is not remembered. */
  googleInsertCharsMax: 32 * 1024,
  /** Passes for which the process remembers the version that Google has. */
  googleVersionsRememberedMax: 10_000,

  // Chat.
  /** The provider's initial rate for a phone number (80 a second, WhatsApp Cloud API, "Throughput"). */
  chatMessagesPerSecond: 80,
  /** A throttled number never gets slower than this; otherwise it would not notice the end of the throttling. */
  chatMessagesPerSecondMin: 1,
  /** By how much a number's rate grows per second after throttling: full rate in at most twenty seconds. */
  chatRecoveryPerSecond: 4,
  /** How long a rate that was too high is avoided. Longer would slow a number down whose limit was raised since. */
  chatLearnedMs: 10 * 60_000,
  /** From the request to the end of the answer. */
  chatTimeoutMs: 30_000,
  /**
   * How long a message with an unknown outcome waits for the provider's callbacks before it is sent again. Callbacks
   * come within seconds, and late ones are mostly our own doing: a restarted or moved API, or a refused hook that the
   * provider retries at growing intervals. Ten minutes outlast those, and most messages are still useful afterwards.
   */
  ambiguousWaitMs: 10 * 60_000,
  /** Each try without an answer can be a message that the recipient gets. */
  ambiguousAttemptsMax: 3,
  /** How long a number rests after too many people reported it: the provider judges by days, so sooner is useless. */
  chatSpamPauseMs: 6 * 60 * 60_000,
  /** A locked or restricted account is tried again after this: people have to act first, and may have acted. */
  chatLockedPauseMs: 15 * 60_000,
  /** Refused credentials are tried again after this. New ones are tried at once. */
  chatCredentialsPauseMs: 30_000,
  /** No provider answer stops a number for longer, because no job lives longer. */
  chatPauseMsMax: 24 * 60 * 60_000,
  /** First wait for a recipient who got messages too often; the provider takes one message per six seconds. */
  chatPairSpacingMs: 6_000,
  chatPairSpacingMsMax: 15 * 60_000,
  /** Pairs of number and recipient whose spacing is remembered; the oldest is forgotten first. */
  chatPairsMax: 10_000,
  /** Numbers whose pace is remembered; above it, numbers with nothing worth remembering are forgotten. */
  chatNumbersMax: 10_000,
  /** A paced tenant asks again after this at the latest: the number may be free by then. */
  chatAskAgainMs: 30_000,
  /** A tenant that is this late for a turn at a shared number loses the turn. */
  chatTurnLateMsMax: 1_000,
  chatAnswerBytesMax: 64 * 1024,
  /** Length of the provider's ids, which have about sixty characters. */
  chatMessageIdCharsMax: 512,
  /** Length of a provider's error that is shown to a tenant, for its title and its details each. */
  chatErrorCharsMax: 300,

  /** A provider reports on most messages within minutes; a later report names its job itself, or belongs to none. */
  providerRefKeptMs: 6 * 60 * 60 * 1000,
  /** References are written by the hour and leave by the hour. */
  providerRefHourMs: 60 * 60 * 1000,

  // Recording.
  /** Rows that one call freezes in all. */
  recordRowsMax: 10_000,
  recordEntriesMax: 4_000,
  /** Pieces of a batch: each shard's mark names them all. */
  recordPiecesMax: 32,
  /** Longest wait from an event to the start of its insert, and shortest time between two small inserts. */
  recordLingerMs: 350,
  eventVisibleMsMax: 1_000,
  /** How long one insert may take before it is repeated. */
  eventStoreInsertTimeoutMs: 6_000,
  /** A batch with more text than this is written by several inserts. */
  eventStoreInsertCharsMax: 8 * 1024 * 1024,
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

  // The chat provider's callbacks.
  /** The provider sends at most three megabytes in one call. */
  webhookBodyBytesMax: 3 * 1024 * 1024,
  /** Statuses of a call that are processed at one time. */
  webhookStatusesMax: 500,
  /** Statuses that are held because their message is still unknown; further ones are counted and dropped. */
  earlyStatusesMax: 10_000,
  /** How long they are held: a status may come before the answer to the call that sent the message. */
  earlyStatusMs: 35_000,
  /** First and longest wait before their messages are looked up again. */
  earlyStatusRetryMs: 50,
  earlyStatusRetryMsMax: 5_000,
  /** Incoming messages that are kept, the newest ones, and the length of one message's text. */
  incomingMessagesMax: 10_000,
  incomingMessageCharsMax: 8_192,

  // Links.
  /** A longer address stays unchanged in a message: with its token it would exceed what mail clients accept. */
  linkUrlBytesMax: 2_048,
  /** Tracked links per message, the first ones. */
  trackedLinksMax: 1_000,
  /** Opens and clicks that a process remembers until the queue has them; further ones are not recorded. */
  engagementsPendingMax: 10_000,

  // Devices with passes. Apple names no limits; its devices stay far below these.
  /** Devices per pass: anybody with its token could invent more. */
  devicesPerPassMax: 10_000,
  deviceIdCharsMax: 255,
  /** Length of a pass type or a serial in a URL. */
  passNameCharsMax: 1_024,
  registrationBytesMax: 4 * 1024,
  /** Serials in one answer about updates; the remaining ones follow in the next. */
  updatedSerialsMax: 1_000,
  deviceLogBytesMax: 16 * 1024,
  /**
   * Lines that are kept per call, and per minute for all devices; further ones are counted. Any stranger can send them.
   */
  deviceLogLinesMax: 10,
  deviceLogLinesPerMinute: 60,
  deviceLogLineCharsMax: 500,

  // Webhooks to tenants about devices.
  webhookUrlCharsMax: 2_048,
  /** Calls that wait or are in flight, in all and per tenant; further ones are counted but not made. */
  webhooksPendingMax: 10_000,
  tenantWebhooksPendingMax: 1_000,
  /** Calls in flight, in all and per tenant. */
  webhookCallsMax: 32,
  tenantWebhookCallsMax: 4,
  /** From the name lookup to the status of the answer. */
  webhookTimeoutMs: 5_000,

  // Reading.
  eventPageDefault: 100,
  eventPageMax: 500,
  eventWindowDaysMax: 31,
  eventStoreReadTimeoutMs: 10_000,
  /** Events shown per job, the oldest first. */
  jobEventsMax: 10_000,
  snapshotStaleMsMax: 1_000,

  // Exports for analysts.
  /** In flight at a time per process: a piece of each is in memory, and in the embedded default each has a core. */
  exportsMax: 1,
  /** Days, including both ends. */
  exportDaysMax: 366,
  /** Rows per statement, and about how many bytes they should come to. */
  exportPieceRowsMax: 10_000,
  exportPieceBytesMax: 4 * 1024 * 1024,
  exportChunkBytes: 256 * 1024,
  /** How long ClickHouse may take to write a file, which cannot be read before it is complete. */
  exportFileMsMax: 200_000,
  /** A client that reads nothing for this long is gone. */
  exportStalledMs: 60_000,

  // Analysts' statements inside this process: few and narrow, so that the recorder and the API keep the machine.
  analystQueriesMax: 2,
  /** Statements that wait for their turn, and how long they wait. */
  analystQueriesWaitingMax: 128,
  analystWaitMs: 30_000,
  analystQueryMs: 300_000,
  analystThreadsMax: 2,
  analystMemoryBytesMax: 512 * 1024 * 1024,
  /**
   * Size of a result that is returned in one piece, as columns in the engine's memory; a streamed result has no bound.
   */
  analystResultBytesMax: 32 * 1024 * 1024,
  analystResultRowsMax: 1_000_000,
  /** Size of a request after decompression: the engine accepts no longer statement. */
  analystRequestBytesMax: 256 * 1024,
  /** A client that reads none of its result for this long is cut off: it occupies one of the few turns. */
  analystStallMs: 30_000,
} as const;

assert(limits.leaseRenewMs * 2 + limits.leaseMarginMs < limits.leaseTtlMs, "one lost renewal must not lose the lease");
assert(limits.leaseTtlMs + limits.leaseCompeteMs < limits.takeoverMsMax, "a dead owner is replaced in time");
assert(
  limits.chatTimeoutMs + limits.abortGraceMs < limits.deliveryTimeoutMs,
  "a chat message ends by its own time-out",
);
assert(limits.recordLingerMs * 2 <= limits.eventVisibleMsMax, "an event is visible in time");
assert(
  limits.drainAbortMs + limits.abortGraceMs < limits.drainMs,
  "deliveries that a drain aborts can still be settled",
);
assert(limits.eventStoreInsertTimeoutMs < limits.drainMs, "an insert in progress does not hold up a drain");
assert(limits.drainMs < 10_000, "a drain ends within the promised ten seconds");
assert(limits.chatTimeoutMs < limits.earlyStatusMs, "a status that comes before its answer waits for it");
