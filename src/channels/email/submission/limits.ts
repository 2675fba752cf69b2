/** Bounds of SMTP submission. */
export const submissionLimits = {
  /** Of a message as it is sent: 10 MiB of attachments in base64 and what is beside them. Announced as `SIZE`. */
  messageBytesMax: 14 * 1024 * 1024,
  /** What is larger is read so far for its reply, for clients that do not know of `SIZE`, before it is hung up on. */
  messageBytesReadMax: 28 * 1024 * 1024,
  /** Of one message (RFC 5321, 4.5.3.1.8). */
  recipientsMax: 100,
  /** Open at a time, of one process. */
  connectionsMax: 256,
  /** Sockets, those included that are being closed. */
  socketsMax: 512,
  connectionsPerTenantMax: 32,
  /** Of one address, while they have not logged in; a newcomer replaces the oldest. */
  strangersPerAddressMax: 32,
  /** How long a connection may go without logging in, */
  loginMs: 30_000,
  /** be silent (RFC 5321, 4.5.3.2.7), */
  idleMs: 5 * 60_000,
  /** and take to send one message. */
  dataMs: 5 * 60_000,
  /** Between two messages: more than a message with all its recipients needs. */
  commandsMax: 300,
  /** Tried on one connection. */
  wrongKeysMax: 3,
  /** How long a stop waits for messages under way. */
  drainMs: 6_000,
  /** Lines and parts of a message: each costs memory, however short it is. */
  linesMax: 300_000,
  /** Each is read in a turn of its own. More are taken of larger messages, one for every 64 bytes. */
  dottedLinesMax: 10_000,
  dashedLinesMax: 10_000,
  nestingMax: 20,
  /** Of one head, and of all of them together. */
  headerBytesMax: 256 * 1024,
  headerLinesMax: 30_000,
} as const;
