import { sql } from "drizzle-orm";
import type { AnyDb } from "./postgres/database.ts";
import { readRows } from "./postgres/rows-of.ts";

/** Returns the server's version, and its clock in Unix milliseconds. */
export async function registryHealth(db: AnyDb): Promise<{ readonly version: string; readonly nowMs: number }> {
  const answer = await db.execute(
    sql`select current_setting('server_version') as version, (extract(epoch from clock_timestamp()) * 1000)::float8 as now`,
  );
  const [health] = readRows(answer);
  return { version: String(health?.["version"]), nowMs: Number(health?.["now"]) };
}
