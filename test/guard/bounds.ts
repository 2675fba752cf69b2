import { expect } from "bun:test";

/**
 * The countable costs of a job. A count is the same on a busy machine as on an idle one, so its bound is tight:
 * `counted` is the value when the bound was set last, `most` the bound. A change that lowers a count lowers both; one
 * that has to raise it raises them here, where it is visible.
 *
 * Figures that depend on how many jobs happen to go together (dispatch, the whole path) have a wider margin.
 */
const BOUNDS = {
  // Accepting, 64 requests at a time: the first goes alone, the others together.
  "accept: script calls a job": { counted: 0.031, most: 0.032 },
  "accept: Redis commands a job": { counted: 2.14, most: 2.3 },
  "accept: bytes appended a job": { counted: 333, most: 345 },
  // Pulling and settling queued jobs, 16 shards, a channel that answers at once. A job's end names its recipient.
  "dispatch: script calls a job": { counted: 0.028, most: 0.05 },
  "dispatch: Redis commands a job": { counted: 0.67, most: 1.2 },
  "dispatch: bytes appended a job": { counted: 209, most: 225 },
  // A mail over a connection that is kept.
  "mail: writes to the socket": { counted: 2, most: 2 },
  "mail: parses of its payload": { counted: 1, most: 1 },
  "mail: objects left behind": { counted: 0.3, most: 0.7 },
  // The process as it starts, 16 shards, without a job. Each shard checks every quarter of a second, and simultaneous
  // checks share a call: 8 to 64 a second.
  "at rest: script calls a second": { counted: 31, most: 90 },
  "at rest: Redis commands a second": { counted: 690, most: 900 },
  // Each end contains the relay's reply, about 120 bytes. A burst of some seconds of 96 tenants, so that every shard is
  // busy; minus the load at rest. The number of jobs that share a call depends on the machine. Sent one at a time, a
  // job takes 4.0 calls, 43 commands and 1,720 bytes; eight at a time, 1.5, 38 and 1,540. Six busy processes beside it
  // raised the commands to 22.6 and the bytes to 1,250.
  "whole: script calls a job": { counted: 0.5, most: 1.2 },
  "whole: Redis commands a job": { counted: 21.5, most: 30 },
  "whole: bytes appended a job": { counted: 1_320, most: 1_650 },
  "whole: inserts of events a second": { counted: 2, most: 6 },
  "whole: inserts of jobs a second": { counted: 3, most: 6 },
} as const;

export type Bounded = keyof typeof BOUNDS;

/** Fails if the count exceeds its bound. */
export function expectWithin(what: Bounded, count: number): void {
  const { counted, most } = BOUNDS[what];
  const why = `${what}: ${count}; it was ${counted} when the bound of ${most} was set (test/guard/bounds.ts)`;
  expect(count, why).toBeLessThanOrEqual(most);
}

/** Fails unless the planted waste exceeds the bound: a bound that cannot be broken is useless. */
export function expectOver(what: Bounded, count: number): void {
  expect(count, `${what}: planted waste is let pass`).toBeGreaterThan(BOUNDS[what].most);
}
