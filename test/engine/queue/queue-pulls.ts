/** Bytes that no test's pull runs out of. */
export const ROOM = 64 * 1024 * 1024;
/** A pull that only names ready tenant queues. */
export const PULL = {
  tenantQueues: [],
  survey: false,
  bytesMax: ROOM,
  shardTimeMs: null,
  confirmedSkewMs: null,
} as const;
