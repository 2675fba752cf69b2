import { assert } from "./errors.ts";

/** Every bound of the engine, beside those that it must agree with. */
export const limits = {
  // The front door.
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
  /** More than any body of a template, which has 1,024 characters, can name. */
  chatParamsMax: 200,

  // Passes.
  passSerialCharsMax: 200,
  passTextCharsMax: 20_000,
  /** Fields at one place of a pass: more than any device shows. */
  passFieldsMax: 100,
  /** What a pass says, as JSON and beside its images. */
  passContentCharsMax: 256 * 1024,
  passImageBytesMax: 2 * 1024 * 1024,
  passImagePixelsMax: 4_096,
  /** What a template of a pass holds, images included: every process keeps it in memory. */
  passTemplateCharsMax: 1024 * 1024,
  /** How long a request waits for another one under its Idempotency-Key that has stored its pass and not queued its job. */
  passTwinMs: 10_000,
  /** Longer than an accept can be under way: a pass whose job nobody knows by then has none. */
  passUnfinishedMs: 15 * 60_000,
  passSweepMs: 60_000,

  // What operators may set.
  /** Aliases of one tenant: all of them are in its snapshot. */
  aliasesMax: 5_000,
  requestsPerMinuteMax: 1_000_000,
  deliveriesPerSecondMax: 100_000,
  /** Of one tenant's share of the queue: unfinished jobs, and the bytes of their payloads. */
  queuedJobsMax: 1_000_000_000,
  queuedBytesMax: 1024 ** 4,
  holdHoursMax: 7 * 24,

  // Accepting.
  acceptBatchJobsMax: 256,
  acceptBatchBytesMax: 4 * 1024 * 1024,
  queueStartMs: 10_000,
  /** Requests that wait for their turn at the queue; more are refused. */
  commitQueueMax: 20_000,
  /** A request that has waited this long for its turn is refused. */
  commitWaitMs: 5_000,
  /** How long an accept whose effect is unknown is repeated before the caller hears of it. */
  acceptRetryMs: 5_000,

  // Leases.
  leaseTtlMs: 10_000,
  leaseRenewMs: 3_000,
  /** Taken off a lease's end before a provider call may still start. */
  leaseMarginMs: 1_500,
  leaseCompeteMs: 1_000,
  takeoverMsMax: 15_000,

  // Delivering.
  /** A tenant's deliveries under way on a channel. */
  tenantWindowMax: 64,
  pullEntriesPerBoxMax: 64,
  pullBoxesMax: 64,
  pullDueMax: 256,
  /** How far a shard's time may be from its owner's reckoning: more than a call takes, less than any retry's wait. */
  shardTimeSlackMs: 1_000,
  pullReadyMax: 256,
  /** An actor asks for more when it has fewer entries than this waiting for a slot. */
  refillEntries: 48,
  /** A box's entries that are pulled and not yet settled. */
  boxOpenMax: 256,
  /** Payloads that a process holds before their delivery; above it a box gives no more than one at a time. */
  backlogBytesMax: 128 * 1024 * 1024,
  settleBatchMax: 256,
  /** Outcomes of all shards in one call: some 7 µs of Redis each. */
  settleCallMax: 1_024,
  /** Shards in one pull. */
  pullShardsMax: 64,
  /** Longest wait between two tries of a queue call that fails. */
  queueRetryMs: 1_000,
  /** Longest wait between two tries of giving back what a failed job took. */
  giveBackRetryMsMax: 5_000,
  /** Wait before a tenant is looked up again in a registry that does not answer. */
  tenantRetryMs: 500,
  /** A day's allowance is taken in pieces, at most a fiftieth of it and this many: what is at hand is lost in a crash. */
  allowancePieceMax: 64,
  /** How long it is known what was taken of a day's allowance: longer than any clock takes that day for today. */
  allowanceKeptMs: 2 * 24 * 60 * 60 * 1000,
  /** A box whose allowance is used up is looked at this often: the operator may have raised it. */
  allowanceLookMs: 60_000,
  deliveryTimeoutMs: 60_000,
  /** A channel that does not heed the abort of its delivery is not waited for any longer than this. */
  abortGraceMs: 1_000,
  /** How long a pause lets a paced tenant catch up at once. */
  paceBurstMs: 100,
  idlePollMs: 250,
  /** How long mail can stay unknown that an owner was told of in an answer which it never got. */
  surveyMs: 10_000,
  /** On a drain, deliveries that are still under way are aborted here, and given up at `drainMs`. */
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
  /** Passes that a process works on at one time. */
  walletDeliveriesMax: 32,
  /** Passes of which it is remembered which version their devices were told of. */
  pushedVersionsRememberedMax: 10_000,
  /** From a push to the end of its answer. */
  apnsRequestMs: 10_000,
  /** A connection that nothing came over for this long is asked whether it is still there, and has `apnsPingMs` to answer. */
  apnsIdleMs: 30_000,
  apnsPingMs: 2_000,
  /** First and longest wait after a connection that could not be opened. */
  apnsReconnectMs: 500,
  apnsReconnectMsMax: 20_000,
  /** How often a push moves to the next connection because the last one ended, before it waits. */
  apnsMovesMax: 5,
  /** Certificates, one connection each. */
  apnsSessionsMax: 256,
  apnsConcurrencyMax: 200,
  /** Pushes that a process remembers; beyond it devices find out by themselves. */
  apnsPendingMax: 50_000,
  /** How long an update waits for its pushes; they go on without it. */
  apnsFirstRoundMs: 10_000,
  /** How long a certificate is left alone that Apple refuses. */
  apnsPauseMs: 5 * 60_000,
  apnsAnswerCharsMax: 4_096,

  // Google's wallet.
  /** Calls a second that Google takes for one issuer (its FAQ for issuers). */
  googleCallsPerSecond: 20,
  /** Jobs of an issuer that wait for their turn, a tenant's window and more; others come back later. */
  googleJobsWaitingMax: 100,
  /** Callers of the API who wait for their turn; others are told to try again. */
  googleRequestsWaitingMax: 20,
  googleCallTimeoutMs: 15_000,
  /** How long a caller of the API waits for Google, all calls together. */
  googleRequestTimeoutMs: 20_000,
  googleAnswerBytesMax: 4 * 1024 * 1024,
  googleTokenTimeoutMs: 10_000,
  /** Access tokens last an hour; this long before their end they are used no more. */
  googleTokenMarginMs: 5 * 60_000,
  /** Service accounts that a process holds access tokens of, and issuers that it knows the pace of. */
  googleAccountsMax: 1_000,
  /** Objects whose insertion got no answer, remembered so that they are known again. */
  googleInsertsRememberedMax: 1_000,
  /** A larger object is not remembered. */
  googleInsertCharsMax: 32 * 1024,
  /** Passes of which it is remembered which version Google has. */
  googleVersionsRememberedMax: 10_000,

  // Chat.
  /** What the provider grants a phone number at first (80 a second, WhatsApp Cloud API, "Throughput"). */
  chatMessagesPerSecond: 80,
  /** A number that is throttled is never slower than this, or it would not find out when that is over. */
  chatMessagesPerSecondMin: 1,
  /** By how much a number's rate grows each second after it was throttled: back in twenty seconds at most. */
  chatRecoveryPerSecond: 4,
  /** How long a rate that was too high is kept away from. Longer would hold a number down that was raised since. */
  chatLearnedMs: 10 * 60_000,
  /** From the request to the end of the answer. */
  chatTimeoutMs: 30_000,
  /**
   * How long a message whose fate is unknown waits for the provider's callbacks before it is sent again. They come
   * within seconds, and late ones are mostly our own doing: an API that was restarted or moved, a hook that was refused
   * and is tried again with growing gaps. Ten minutes outlast those, and most messages are still of use afterwards.
   */
  ambiguousWaitMs: 10 * 60_000,
  /** Each try that nobody answers can be a message that the recipient gets. */
  ambiguousAttemptsMax: 3,
  /** A number that too many people reported rests for this long: the provider looks at days, so sooner is of no use. */
  chatSpamPauseMs: 6 * 60 * 60_000,
  /** A locked or restricted account is asked again after this: people have to act first, and may have acted. */
  chatLockedPauseMs: 15 * 60_000,
  /** Refused credentials are tried again after this. New ones are tried at once. */
  chatCredentialsPauseMs: 30_000,
  /** No answer of the provider's stops a number for longer: a job lives no longer. */
  chatPauseMsMax: 24 * 60 * 60_000,
  /** First wait for a recipient who was written to too often; the provider takes one message in six seconds. */
  chatPairSpacingMs: 6_000,
  chatPairSpacingMsMax: 15 * 60_000,
  /** Pairs of number and recipient that are remembered as spaced; the oldest is forgotten first. */
  chatPairsMax: 10_000,
  /** Numbers whose pace is remembered before those are forgotten of which there is nothing to remember. */
  chatNumbersMax: 10_000,
  /** A paced tenant asks again after this at the latest: the number may have been freed meanwhile. */
  chatAskAgainMs: 30_000,
  /** Who is this much late for a turn at a shared number has lost it. */
  chatTurnLateMsMax: 1_000,
  chatAnswerBytesMax: 64 * 1024,
  /** Of the provider; its ids have about sixty. */
  chatMessageIdCharsMax: 512,
  /** What is repeated to a tenant of a provider's error, of its title and of its details each. */
  chatErrorCharsMax: 300,

  /** A provider reports on most messages within minutes; what comes later names its job itself, or belongs to none. */
  providerRefKeptMs: 6 * 60 * 60 * 1000,
  /** References are written by the hour and leave by the hour. */
  providerRefHourMs: 60 * 60 * 1000,

  // Recording.
  /** Of all that one call freezes. */
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
  /** Jobs that a call of `record` lets leave at least, as far as their time has come: a backlog shrinks on idle calls. */
  leaveJobsMin: 512,
  /** How long a job stays readable in Redis once it is final and in the event store. */
  jobKeptMs: 15 * 60 * 1000,

  // What the chat provider calls back with.
  /** Three megabytes are the most that it sends in one call. */
  webhookBodyBytesMax: 3 * 1024 * 1024,
  /** Statuses of a call that are worked on at one time. */
  webhookStatusesMax: 500,
  /** Statuses that are held because nobody knows their message yet; beyond it they are counted, and dropped. */
  earlyStatusesMax: 10_000,
  /** How long they are held: a status may come before the answer to the call that sent the message. */
  earlyStatusMs: 35_000,
  /** First and longest wait before their messages are looked for again. */
  earlyStatusRetryMs: 50,
  earlyStatusRetryMsMax: 5_000,
  /** Messages that came in, the newest ones, and the text of one of them. */
  incomingMessagesMax: 10_000,
  incomingMessageCharsMax: 8_192,

  // Links.
  /** A longer address is left as it is in a message: with its token it would not fit into what clients take. */
  linkUrlBytesMax: 2_048,
  /** Links of one message that are tracked, the first ones. */
  trackedLinksMax: 1_000,
  /** Opens and clicks that a process remembers until the queue has them; beyond it they are not recorded. */
  engagementsPendingMax: 10_000,

  // Devices with passes. Apple names no bounds; its devices stay far below these.
  /** More devices cannot have one pass: whoever holds its token could invent them. */
  devicesPerPassMax: 10_000,
  deviceIdCharsMax: 255,
  /** Of a pass type or a serial in an address. */
  passNameCharsMax: 1_024,
  registrationBytesMax: 4 * 1024,
  /** Serials in one answer to what changed; the rest is in the next. */
  updatedSerialsMax: 1_000,
  deviceLogBytesMax: 16 * 1024,
  /** Lines of one call, and of all devices in a minute, that are kept; the rest is counted. Any stranger can send them. */
  deviceLogLinesMax: 10,
  deviceLogLinesPerMinute: 60,
  deviceLogLineCharsMax: 500,

  // Telling tenants of devices.
  webhookUrlCharsMax: 2_048,
  /** Calls that wait or are under way, in all and of one tenant; beyond it they are counted, and not made. */
  webhooksPendingMax: 10_000,
  tenantWebhooksPendingMax: 1_000,
  /** Calls under way, in all and of one tenant. */
  webhookCallsMax: 32,
  tenantWebhookCallsMax: 4,
  /** From the look-up of the name to the status of the answer. */
  webhookTimeoutMs: 5_000,

  // Reading.
  eventPageDefault: 100,
  eventPageMax: 500,
  eventWindowDaysMax: 31,
  eventStoreReadTimeoutMs: 10_000,
  /** Events of one job that are shown, the oldest first. */
  jobEventsMax: 10_000,
  snapshotStaleMsMax: 1_000,

  // Exports for analysts.
  /** Under way at a time in a process: a piece of one is in memory, and in the embedded default it has a core. */
  exportsMax: 1,
  /** Days, both ends counted. */
  exportDaysMax: 366,
  /** Rows of one statement, and about the bytes that it should come to. */
  exportPieceRowsMax: 10_000,
  exportPieceBytesMax: 4 * 1024 * 1024,
  exportChunkBytes: 256 * 1024,
  /** How long ClickHouse may take to write a file, which nobody can read before it is whole. */
  exportFileMsMax: 200_000,
  /** A client that takes nothing for so long has gone. */
  exportStalledMs: 60_000,

  // Analysts' statements inside this process: few and narrow, so that recorder and API keep the machine.
  analystQueriesMax: 2,
  /** Statements that wait for their turn, and how long. */
  analystQueriesWaitingMax: 128,
  analystWaitMs: 30_000,
  analystQueryMs: 300_000,
  analystThreadsMax: 2,
  analystMemoryBytesMax: 512 * 1024 * 1024,
  /** Of a result that is handed out in one piece, as columns in the engine's memory; what is streamed has no bound. */
  analystResultBytesMax: 32 * 1024 * 1024,
  analystResultRowsMax: 1_000_000,
  /** Of a request, after it is unpacked: the engine takes no longer statement. */
  analystRequestBytesMax: 256 * 1024,
  /** A client that takes nothing of its result for so long is cut off: it keeps one of the few turns. */
  analystStallMs: 30_000,
} as const;

assert(limits.leaseRenewMs * 2 + limits.leaseMarginMs < limits.leaseTtlMs, "one lost renewal must not lose the lease");
assert(limits.leaseTtlMs + limits.leaseCompeteMs < limits.takeoverMsMax, "a dead owner is replaced in time");
assert(
  limits.chatTimeoutMs + limits.abortGraceMs < limits.deliveryTimeoutMs,
  "a chat message ends by its own time-out",
);
assert(limits.recordLingerMs * 2 <= limits.eventVisibleMsMax, "an event is visible in time");
assert(limits.drainAbortMs + limits.abortGraceMs < limits.drainMs, "what a drain aborts can still be settled");
assert(limits.eventStoreInsertTimeoutMs < limits.drainMs, "an insert in progress does not hold up a drain");
assert(limits.drainMs < 10_000, "a drain ends within the ten seconds that are promised");
assert(limits.chatTimeoutMs < limits.earlyStatusMs, "a status waits for the answer that it came before");
