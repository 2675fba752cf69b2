import { assert } from "./errors.ts";

/** Bounds on which several folders must agree. A folder's own bounds are in its `limits.ts`. */
export const limits = {
  requestBodyBytesMax: 10 * 1024 * 1024,
  addressBytesMax: 254,
  /** Tries that a job's history keeps, and the characters of each text in them. */
  attemptsKeptMax: 20,
  attemptCharsMax: 300,
  idempotencyKeyCharsMax: 255,
  /** How long an accept whose effect is unknown is repeated before the caller gets an error. */
  acceptRetryMs: 5_000,

  /**
   * How long an owner's lease stays unchanged until others count the owner as dead. If two releases with different values
   * run side by side, the one with the shorter value may replace an owner that still believes it is safe: stop all
   * processes before a release that changes it.
   */
  leaseTtlMs: 10_000,
  leaseRenewMs: 3_000,
  /** Subtracted from a lease's end: later, no provider call may start. */
  leaseMarginMs: 1_500,
  leaseCompeteMs: 1_000,
  takeoverMsMax: 15_000,
  deliveryTimeoutMs: 60_000,
  /** Clocks of Redis, of a process and of a shard that differ by more than this are not trusted alone. */
  clocksApartMs: 5 * 60_000,
  /** Longest wait for a channel that ignores the abort of its delivery. */
  abortGraceMs: 1_000,
  /** How much time's worth of deliveries a paced tenant may send at once after a pause. */
  paceBurstMs: 100,
  /** On a drain, deliveries still in flight are aborted after this time, and given up at `drainMs`. */
  drainAbortMs: 6_000,
  drainMs: 8_000,
  attemptsMax: 12,
  /** From the request to the end of the answer, */
  chatTimeoutMs: 30_000,
  /** and for a connection before it, where the provider has not answered for a while. */
  chatConnectMs: 10_000,
  /** Length of a provider's error that is shown to a tenant, for its title and its details each. */
  chatErrorCharsMax: 300,

  /** How long the content of a failed job is kept for a retry: in the event store, and its pass in the registry. */
  failedKeptDays: 7,
  /**
   * A provider reports on most messages within minutes; a later report names its job itself, or cannot be matched to
   * one.
   */
  providerRefKeptMs: 6 * 60 * 60 * 1000,
  /** Longest wait from an event to the start of its insert, and shortest time between two small inserts. */
  recordLingerMs: 350,
  eventVisibleMsMax: 1_000,
  /** How long one insert may take before it is repeated. */
  eventStoreInsertTimeoutMs: 6_000,
  /**
   * How long statuses of unknown messages are kept: a status may arrive before the answer to the call that sent its
   * message.
   */
  earlyStatusMs: 35_000,
  /** The number of latest incoming messages that are kept, and the length of one message's text. */
  incomingMessagesMax: 10_000,
  /**
   * The number of people per sending number whose last message is remembered, and for how long: 100,000 people, each by
   * number and by id.
   */
  writersMax: 200_000,
  writersKeptMs: 48 * 60 * 60 * 1000,

  /** A longer address stays unchanged in a message: with its token it would exceed what mail clients accept. */
  linkUrlBytesMax: 2_048,

  webhookUrlCharsMax: 2_048,
  /** How long ClickHouse may take to write a file, which cannot be read before it is complete. */
  exportFileMsMax: 200_000,
} as const;

assert(limits.leaseRenewMs * 2 + limits.leaseMarginMs < limits.leaseTtlMs, "one lost renewal must not lose the lease");
assert(limits.leaseTtlMs + limits.leaseCompeteMs < limits.takeoverMsMax, "a dead owner is replaced in time");
assert(
  limits.chatConnectMs + limits.chatTimeoutMs + limits.abortGraceMs < limits.deliveryTimeoutMs,
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
