/** Bounds of SMTP submission. */
export const submissionLimits = {
  /** A transferred message: 10 MiB of attachments in base64 and the rest. Announced as `SIZE`. */
  messageBytesMax: 14 * 1024 * 1024,
  /**
   * A larger message is read up to this size before the connection is closed, so that clients without `SIZE` get a
   * reply.
   */
  messageBytesReadMax: 28 * 1024 * 1024,
  /** Recipients of one message (RFC 5321, 4.5.3.1.8). */
  recipientsMax: 100,
  /** Open connections of one process. */
  connectionsMax: 256,
  /** Sockets, including those being closed. */
  socketsMax: 512,
  connectionsPerTenantMax: 32,
  /** Connections of one address that have not logged in; a newcomer replaces the oldest. */
  strangersPerAddressMax: 32,
  /** How long a connection may go without logging in, */
  loginMs: 30_000,
  /** be silent (RFC 5321, 4.5.3.2.7), */
  idleMs: 5 * 60_000,
  /** and take to send one message. */
  dataMs: 5 * 60_000,
  /** Commands between two messages: more than a message with all its recipients needs. */
  commandsMax: 300,
  /** Wrong keys on one connection. */
  wrongKeysMax: 3,
  /** How long a stop waits for messages in transfer. */
  drainMs: 6_000,
  /** Lines and parts of a message: each costs memory, however short it is. */
  linesMax: 300_000,
  /**
   * Lines that begin with a dot: each is read in a separate step. Larger messages may have more, one for every 64
   * bytes.
   */
  dottedLinesMax: 10_000,
  dashedLinesMax: 10_000,
  nestingMax: 20,
  /** One head, and all of them together. */
  headerBytesMax: 256 * 1024,
  headerLinesMax: 30_000,
} as const;
