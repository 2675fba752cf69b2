/** Bytes that no test's pull runs out of. */
export const ROOM = 64 * 1024 * 1024;
/** A pull of nothing but what is ready. */
export const PULL = { tenantQueues: [], survey: false, bytesMax: ROOM, shardTimeMs: null } as const;
