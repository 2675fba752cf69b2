import { limits } from "../../domain/limits.ts";

/** Bounds of wallet passes, their devices and their providers. */
export const walletLimits = {
  // Passes.
  passSerialCharsMax: 200,
  passTextCharsMax: 20_000,
  /** Fields in one position of a pass: more than any device displays. */
  passFieldsMax: 100,
  /** The content of a pass as JSON, without its images. */
  passContentCharsMax: 256 * 1024,
  /** Members of pass.json that are not known here, as JSON. */
  passExtraCharsMax: 64 * 1024,
  /** Entries of `upcomingPassInformation`: a season's. */
  passUpcomingMax: 200,
  passLanguagesMax: 50,
  passImageBytesMax: 2 * 1024 * 1024,
  /** All files of a pass together: its bundle is read into memory for each download. */
  passImagesBytesMax: 4 * 1024 * 1024,
  passImagePixelsMax: 4_096,
  /** Displayed at 29 to 87 pixels: a device has to decode it for each list. */
  passIconPixelsMax: 1_024,
  /** The content of a pass template, including images: every process keeps it in memory. */
  passTemplateCharsMax: 1024 * 1024,
  /**
   * How long a request waits for another one with its Idempotency-Key that has stored its pass but not queued its job.
   */
  passTwinMs: 10_000,
  passTwinLooks: { firstMs: 5, maxMs: 200 },
  /** Passes of one `.pkpasses` file: as many as Wallet accepts (Apple, Distributing and updating a pass). */
  passesPerFileMax: 10,
  /** Such a file: it is built in memory for each call. Wallet accepts 150 MB. */
  passesFileBytesMax: 8 * 1024 * 1024,
  /** Longer than any request can be in flight: a pass whose job is unknown by then has none. */
  passUnfinishedMs: 15 * 60_000,
  passSweepMs: 60_000,
  /** Size of a tenant's failed passes in the registry, including images; the oldest are removed first. */
  failedPassBytesMax: 64 * 1024 * 1024,
  /** As long as the content of failed jobs: a retry needs both. */
  failedPassKeptMs: limits.failedKeptDays * 24 * 60 * 60 * 1000,
  /**
   * Refunds to a tenant per UTC day: failed passes are free, but each leaves a charge and a refund in the ledger
   * permanently.
   */
  refundsADayMax: 100_000,
  /** Classes that a tenant may have on the issuer that tenants share: each is a permanent row. */
  googleClassesMax: 100_000,
  /** Versions of a pass whose authors are remembered, at least; twice as many at most. */
  passVersionsKept: 100,
  /**
   * Passes being stored or changed by tenants (`CallTurns`), per process: they leave some of the registry's ten
   * connections to others, and a tenant's burst waits rather than being refused.
   */
  passChanges: { all: 6, each: 3, waitingMax: 1_000, waitMs: 20_000, retrySeconds: 5 },

  // Wallet.
  /** Passes that a process delivers at a time. */
  walletDeliveriesMax: 32,
  /** Passes for which the process remembers the version that it pushed to their devices. */
  pushedVersionsRememberedMax: 10_000,
  /** From a push to the end of its answer. */
  apnsRequestMs: 10_000,
  /** A connection that was idle for this long is pinged, and has `apnsPingMs` to answer. */
  apnsIdleMs: 30_000,
  apnsPingMs: 2_000,
  /** Waits after a connection could not be opened. */
  apnsReconnect: { firstMs: 500, maxMs: 20_000 },
  /** How often a push moves to the next connection because the last one ended, before it waits. */
  apnsMovesMax: 5,
  /** Certificates, one connection each. */
  apnsSessionsMax: 256,
  /** Requests in flight; one tenant has at most half of them. */
  apnsRequests: { all: 400, each: 200 },
  /** Pushes that a process remembers; devices do not get further ones and find the changes by themselves. */
  apnsPendingMax: 50_000,
  /**
   * How long an update waits for its pushes; they continue without it. Short, because it occupies one of
   * `walletDeliveriesMax` meanwhile: a silent push service would delay the passes of all tenants.
   */
  apnsFirstRoundMs: 1_000,
  /** How long a certificate is not used after Apple has refused it. */
  apnsPauseMs: 5 * 60_000,
  apnsAnswerCharsMax: 4_096,

  // Devices.
  /** Registrations and the like per process: fewer than the registry has connections. */
  deviceChanges: { all: 4, each: 1, waitingMax: 50, waitMs: 10_000, retrySeconds: 5 },

  // Files of passes.
  /**
   * Files that strangers fetch, per process: the embedded registry reads one of 4 MiB in a twentieth of a second,
   * during which it is blocked.
   */
  fileReads: { all: 2, each: 1, waitingMax: 20, waitMs: 10_000, retrySeconds: 2 },
  /**
   * Files that tenants fetch, or get with their jobs, per process: most are small, and a burst waits rather than being
   * refused.
   */
  tenantFileReads: { all: 4, each: 2, waitingMax: 1_000, waitMs: 10_000, retrySeconds: 2 },

  // Google's wallet.
  /** Calls per second that Google accepts for one issuer (its FAQ for issuers). */
  googleCallsPerSecond: 20,
  /** Jobs of an issuer that wait for their turn: a tenant's window and more; others come back later. */
  googleJobsWaitingMax: 100,
  /** API callers that wait for their turn; others must try again. */
  googleRequestsWaitingMax: 20,
  googleCallTimeoutMs: 15_000,
  /** How long an API caller waits for Google, all calls together. */
  googleRequestTimeoutMs: 20_000,
  googleAnswerBytesMax: 4 * 1024 * 1024,
  googleTokenTimeoutMs: 10_000,
  /** Access tokens last an hour; they are no longer used this long before their end. */
  googleTokenMarginMs: 5 * 60_000,
  /** Service accounts whose access tokens a process caches, and issuers whose pace it remembers. */
  googleAccountsMax: 1_000,
  /** Objects whose insertion got no answer, remembered in order to recognise them later. */
  googleInsertsRememberedMax: 1_000,
  /** A larger object is not remembered. */
  googleInsertCharsMax: 32 * 1024,
  /** Passes for which the process remembers the version that Google has. */
  googleVersionsRememberedMax: 10_000,

  // Google's callbacks.
  callbackBytesMax: 16 * 1024,
  /** Callbacks of an issuer that are stored at one time, per process. */
  callbackChanges: { all: 3, each: 2, waitingMax: 500, waitMs: 10_000, retrySeconds: 5 },
  /** Retry interval of a callback whose pass is being created. */
  callbackRetrySeconds: 30,
  /** Stored nonces of a pass: each is a save or a removal by a person. */
  callbackNoncesMax: 1_000,
  /** Interval of log lines about callbacks without effect. */
  callbackLogMs: 10_000,
  callbackKeysTimeoutMs: 5_000,
  callbackKeysBytesMax: 64 * 1024,
  /** After a failed fetch. */
  callbackKeysRetryMs: 10_000,
  /** Minimum age of keys before they are fetched again. */
  callbackKeysRenewMs: 60_000,
  callbackKeysFreshMsMax: 24 * 60 * 60 * 1000,
  /** How long keys remain in use while new ones cannot be fetched. */
  callbackKeysKeptMs: 3 * 24 * 60 * 60 * 1000,

  // Devices with passes. Apple names no limits; its devices stay far below these.
  /** Devices per pass: anyone with its token could invent more. */
  devicesPerPassMax: 10_000,
  deviceIdCharsMax: 255,
  /** Length of a pass type or a serial in a URL. */
  passNameCharsMax: 1_024,
  registrationBytesMax: 4 * 1024,
  /** Serials in one answer about updates; the remaining ones follow in the next. */
  updatedSerialsMax: 1_000,
  /** Data that a holder enters in a pass's form: a name, an address, a number. */
  personalizationBytesMax: 16 * 1024,
  personalizationTokenCharsMax: 2_048,
  /** Such calls, per process, by pass: the first call for each pass signs and stores it. */
  personalizations: { all: 2, each: 1, waitingMax: 20, waitMs: 10_000, retrySeconds: 5 },
  deviceLogBytesMax: 16 * 1024,
  /** Lines that are kept per call, and per minute for all devices; further ones are counted. Anyone can send them. */
  deviceLogLinesMax: 10,
  deviceLogLinesPerMinute: 60,
  deviceLogLineCharsMax: 500,
  /** Calls that wait or are in flight, in all and per tenant; further ones are counted but not made. */
  webhooksPendingMax: 10_000,
  tenantWebhooksPendingMax: 1_000,
  /** Calls in flight, in all and per tenant. */
  webhookCallsMax: 32,
  tenantWebhookCallsMax: 4,
  /** From the name lookup to the status of the answer. */
  webhookTimeoutMs: 5_000,
} as const;
