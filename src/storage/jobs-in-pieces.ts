import type { PayloadRef } from "../domain/payload-store.ts";

/** How many jobs are read at a time. */
export const PIECE = 500;

/** All jobs of a table, in pieces. `after`: returns those behind this job's id, in the order of ids, at most `PIECE`. */
export async function* jobsInPieces(
  after: (jobId: string) => Promise<readonly PayloadRef[]>,
): AsyncGenerator<readonly PayloadRef[]> {
  for (let last = ""; ; ) {
    const piece = await after(last);
    const end = piece.at(-1);
    if (end === undefined) return;
    yield piece;
    last = end.jobId;
  }
}
