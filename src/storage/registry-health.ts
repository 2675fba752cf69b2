import { sql } from "drizzle-orm";
import type { AnyDb } from "./database.ts";

/** The server's version, and its clock in Unix milliseconds. */
export async function registryHealth(db: AnyDb): Promise<{ readonly version: string; readonly nowMs: number }> {
  const answer: unknown = await db.execute(
    sql`select current_setting('server_version') as version, (extract(epoch from clock_timestamp()) * 1000)::float8 as now`,
  );
  // The drivers answer with the rows, or with an object that holds them.
  const rows = Array.isArray(answer) ? answer : (answer as { rows: unknown[] }).rows;
  const [{ version, now }] = rows as [{ version: string; now: number }];
  return { version, nowMs: Number(now) };
}
