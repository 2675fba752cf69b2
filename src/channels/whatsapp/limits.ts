/** Bounds of chat messages, their numbers and their callbacks. */
export const chatLimits = {
  // Chat messages. The provider's own bounds for a template's name and a text parameter of its body.
  chatTemplateNameCharsMax: 512,
  chatParamCharsMax: 1_024,
  /** More than any template body can name within its 1,024 characters. */
  chatParamsMax: 200,
  /** The provider's bound for the text of a message without a template. */
  chatTextCharsMax: 4_096,
  /** Bytes of an object that is passed on to the provider unchanged, such as a flow's data. */
  chatRawBytesMax: 16 * 1024,
  /** How long after a person's message the provider accepts free text to that person. */
  replyWindowMs: 24 * 60 * 60_000,

  // Bounds for operators.
  /** Aliases of one tenant: its snapshot contains all of them. */
  aliasesMax: 5_000,
  /** Their total size, which is also their share of memory. */
  aliasBytesMax: 8 * 1024 * 1024,

  // The provider's list of an account's templates.
  /** The provider allows an account 6,000 templates, each language being one. */
  templatesMax: 10_000,
  templateListBytesMax: 8 * 1024 * 1024,
  templatePagesMax: 120,
  templatePageBytesMax: 8 * 1024 * 1024,
  templateSyncMsMax: 60_000,
  /** The longest that a send waits for the check of its template. */
  templateLookUpMsMax: 3_000,
  /** How long the provider's answer about a template is reused. */
  templateFreshMs: 60_000,
  /** Lookups of single templates that a tenant's sends may cause in that time. */
  templateLookUpsMax: 30,

  // Chat.
  /** The provider's initial rate for a phone number (80 a second, WhatsApp Cloud API, "Throughput"). */
  chatMessagesPerSecond: 80,
  /** A throttled number never gets slower than this; otherwise it would not notice the end of the throttling. */
  chatMessagesPerSecondMin: 1,
  /** By how much a number's rate grows per second after throttling: full rate in at most twenty seconds. */
  chatRecoveryPerSecond: 4,
  /** How long a rate that was too high is avoided. Longer would slow a number down whose limit was raised since. */
  chatLearnedMs: 10 * 60_000,
  /**
   * How long a message with an unknown outcome waits for the provider's callbacks before it is sent again. Callbacks
   * come within seconds, and late ones are mostly our own doing: a restarted or moved API, or a refused hook that the
   * provider retries at growing intervals. Ten minutes outlast those, and most messages are still useful afterwards.
   */
  ambiguousWaitMs: 10 * 60_000,
  /** Each unanswered attempt may be a message that the recipient receives. */
  ambiguousAttemptsMax: 3,
  /** How long a number pauses after too many people reported it: the provider judges by days, so sooner is useless. */
  chatSpamPauseMs: 6 * 60 * 60_000,
  /** A locked or restricted account is tried again after this: people have to act first, and may have acted. */
  chatLockedPauseMs: 15 * 60_000,
  /** Refused credentials are tried again after this. New ones are tried at once. */
  chatCredentialsPauseMs: 30_000,
  /** Pauses of a number for which the provider fails time after time. */
  chatFailingPause: { firstMs: 1_000, maxMs: 30_000 },
  /** The longest that a probe, the message that tests whether such a number works again, takes to get its verdict. */
  chatProbeMsMax: 45_000,
  /** The API counts as unavailable once this many numbers have failed with no answer in between. */
  chatFailingNumbersMax: 3,
  /** No provider answer stops a number for longer, because no job lives longer. */
  chatPauseMsMax: 24 * 60 * 60_000,
  /** First wait for a recipient who got messages too often; the provider takes one message per six seconds. */
  chatPairSpacingMs: 6_000,
  chatPairSpacingMsMax: 15 * 60_000,
  /** Pairs of number and recipient whose spacing is remembered; the oldest is forgotten first. */
  chatPairsMax: 10_000,
  /** Numbers whose pace is remembered; above it, numbers in their default state are forgotten. */
  chatNumbersMax: 10_000,
  /** A paced tenant asks again after this at the latest: the number may be free by then. */
  chatAskAgainMs: 30_000,
  /** A tenant whose token was refused asks again after this: it may have stored a new one. */
  chatNewTokenMs: 1_000,
  /** A tenant that is this late for its turn at a shared number loses it. */
  chatTurnLateMsMax: 1_000,
  chatAnswerBytesMax: 64 * 1024,
  /** Length of the provider's ids, which have about sixty characters. */
  chatMessageIdCharsMax: 512,

  // The chat provider's callbacks.
  /** The provider sends at most three megabytes in one call. */
  webhookBodyBytesMax: 3 * 1024 * 1024,
  /** Statuses of a call that are processed at one time. */
  webhookStatusesMax: 500,
  /** Statuses that are kept because their message is still unknown; further ones are counted and dropped. */
  earlyStatusesMax: 10_000,
  /** Waits before their messages are looked up again. */
  earlyStatusRetry: { firstMs: 50, maxMs: 5_000 },
  incomingMessageCharsMax: 8_192,
  /** Parts of a call beside statuses and messages that are passed on; the provider packs fewer into one. */
  callbackPartsMax: 500,
} as const;
