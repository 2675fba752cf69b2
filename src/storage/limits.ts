/**
 * The disk space that ClickHouse's engine leaves free: a share of the disk, and at most this many bytes
 * (`clickhouse-config.ts` explains why).
 */
export const diskLimits = {
  freeBytesKept: 256 * 1024 * 1024,
  freeShareKept: 0.05,
} as const;

/**
 * Bounds of analysts' statements on this machine: few and narrow, so that capacity remains for the recorder and the
 * API.
 */
export const analystLimits = {
  analystQueriesMax: 2,
  /** Statements that wait for their turn, and how long they wait. */
  analystQueriesWaitingMax: 128,
  analystWaitMs: 30_000,
  analystQueryMs: 300_000,
  analystThreadsMax: 2,
  analystMemoryBytesMax: 512 * 1024 * 1024,
  /** Size of a request after decompression: the engine accepts no longer statement. */
  analystRequestBytesMax: 256 * 1024,
  /** A client that reads none of its result for this long is cut off: it occupies one of the few turns. */
  analystStallMs: 30_000,
} as const;
