const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Bounds of event webhooks. */
export const webhookLimits = {
  webhooksPerTenantMax: 10,
  descriptionCharsMax: 200,
  /** Events of one call. */
  batchMax: 500,
  /** Bytes of one call's body, unless a single event has more. */
  batchBytesMax: 256 * 1024,

  /** From the name lookup to the answer's head. */
  callTimeoutMs: 15 * SECOND_MS,
  /** Concurrent calls: of a process, and of a tenant while half of the process's are free. */
  callsMax: 256,
  tenantCallsMax: 4,
  /** How long a webhook calls before others have their turn. */
  turnMs: SECOND_MS,
  /** From the start of one turn to the next one for later events. */
  paceMs: 500,
  /** Reads of the event store at a time. */
  readsMax: 2,
  /** Events read at a time for webhooks with smaller batches. */
  pageMin: 100,

  /** Wait after the first, second, … failure; the last value applies from then on. */
  retryMs: [5 * SECOND_MS, 30 * SECOND_MS, 2 * MINUTE_MS, 10 * MINUTE_MS, 30 * MINUTE_MS, HOUR_MS],
  /** Random variation of the wait, as a share of it. */
  jitter: 0.1,
  /** Bounds on the wait that `Retry-After` may request. */
  retryAfterMsMin: 5 * SECOND_MS,
  retryAfterMsMax: DAY_MS,
  /** A webhook that has accepted no call for this long is disabled. */
  disableAfterMs: 3 * DAY_MS,
  /** Wait after a store was unavailable. */
  outageMs: 5 * SECOND_MS,

  /** How long the former secret also signs. */
  formerSecretMs: DAY_MS,
  /** Attempts kept of each webhook, about; and of a second's calls, the last ones. */
  attemptsKeptMax: 500,
  attemptsPerNoteMax: 20,
  attemptsKeptMs: 7 * DAY_MS,
  /** How far a position may move without a call before it is stored. */
  unnotedMs: HOUR_MS,

  /** How often the webhooks of all shards held are read again, which finds changes whose announcement was lost. */
  reloadMs: MINUTE_MS,
  /** How often quiet webhooks are compared with the event store. */
  lookMs: 5 * MINUTE_MS,
  announcedLingerMs: 100,
  /** How long calls in flight may go on when their shard is handed over. */
  closingMs: 500,

  /** News items per transaction; per tenant in memory; and concurrent transactions of different tenants. */
  newsAtOnce: 200,
  newsWaitingMax: 2_000,
  newsWritesMax: 4,
  newsLingerMs: 500,
  /** How long news items are kept, and about how many per tenant. The provider repeats a call for seven days. */
  newsKeptMs: 7 * DAY_MS,
  newsKeptMax: 20_000,

  /** Tests by hand, in flight at a time: of a tenant and of a process. */
  tenantTestsMax: 1,
  testsMax: 50,
} as const;
