import { type SQLWrapper, sql } from "drizzle-orm";
import type { StoredRef } from "../domain/jobs/payload-store.ts";

/** How many jobs are read at a time. */
export const PIECE = 500;

/**
 * Returns all jobs of a table, in pieces. `after`: returns the jobs after this id, in the order of ids, at most
 * `PIECE`.
 */
export async function* jobsInPieces(
  after: (jobId: string) => Promise<readonly StoredRef[]>,
): AsyncGenerator<readonly StoredRef[]> {
  for (let last = ""; ; ) {
    const piece = await after(last);
    const end = piece.at(-1);
    if (end === undefined) return;
    yield piece;
    last = end.jobId;
  }
}

/** Formats a `stored_at` for `StoredRef`: by the server's clock, which all processes share. */
export function storedTimes(storedAt: SQLWrapper) {
  return {
    storedMs: sql<number>`(extract(epoch from ${storedAt}) * 1000)::float8`.mapWith(Number),
    ageMs: sql<number>`(extract(epoch from now() - ${storedAt}) * 1000)::float8`.mapWith(Number),
  };
}
