/** Bounds that only the scripts and their callers know. */
export const bounds = {
  /** How far the shard's time may be from its owner's reckoning: more than a call takes, less than any retry's wait. */
  shardTimeSlackMs: 1_000,
  /** Finished jobs that are noted together, and leave together. */
  leaveTogetherMax: 64,
  /** Jobs that a call of `record` lets leave at least, as far as their time has come: the backlog shrinks on idle calls. */
  leaveJobsMin: 512,
  /** What cannot be decoded is kept for the operator, the newest. */
  quarantineMax: 1_000,
} as const;
