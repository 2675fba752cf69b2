export const DYING_DATABASE = "dying";

/** When the recorder is killed: its batch is marked in Redis, then inserted into two tables, then taken from Redis. */
export const DYING_MOMENTS = [
  "batch is marked",
  "batch is being inserted",
  "events are inserted",
  "batch is inserted",
] as const;
export type DyingMoment = (typeof DYING_MOMENTS)[number] | "never";
