import { sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import { Repeated } from "../domain/repeated.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { AnyDb } from "./database.ts";
import { rowsOf } from "./rows-of.ts";

export interface VacuumOptions {
  /** The embedded PostgreSQL, outside any transaction. */
  readonly db: AnyDb;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

const LOOK_MS = 15_000;
const ALL_MS = 24 * 60 * 60 * 1000;
/**
 * Dead rows that a table may have, and a share of its rows: half of what a server's autovacuum waits for, because a pass over a
 * large table holds up the whole process (a third of a second for 270 MB of which a tenth is dead, next to nothing for less).
 */
const DEAD_ROWS = 500;
const DEAD_SHARE = 0.1;

/**
 * Does what autovacuum does on a server: makes the room of rows that were changed or removed usable again. PGlite has one session
 * and nobody who would do it there, so its files would only grow, by a signed file with every update of a pass.
 *
 * V1. Tables go one at a time, and other statements come between them.
 * V2. All tables go once a day: the counts of dead rows are lost with a process that is killed, and no transaction id may get too old.
 */
export class Vacuum {
  private readonly looks: Repeated;
  private allDueMs: number;

  constructor(private readonly options: VacuumOptions) {
    this.looks = new Repeated(() => this.look(), options.clock, LOOK_MS);
    this.allDueMs = options.clock.monotonicMs() + ALL_MS;
  }

  /** Call once only. */
  start(): void {
    this.looks.start();
  }

  /** Waits for the table at hand. Safe to repeat. */
  stop(): Promise<void> {
    return this.looks.stop();
  }

  /** Goes through the tables that need it, or all if they are due. Never rejects. */
  async look(): Promise<void> {
    const { clock, db, telemetry } = this.options;
    try {
      const isAllDue = clock.monotonicMs() >= this.allDueMs;
      if (isAllDue) this.allDueMs = clock.monotonicMs() + ALL_MS;
      for (const name of await namesOf(db, isAllDue ? sql`true` : IS_WORN)) {
        if (this.looks.isStopping) return;
        await db.execute(sql`VACUUM ${sql.raw(name)}`);
      }
    } catch (error) {
      telemetry.log("warn", "the registry's removed rows could not be made room of", { error: String(error) });
    }
  }
}

const IS_WORN = sql`
  (pg_stat_get_dead_tuples(c.oid) > ${DEAD_ROWS} + ${DEAD_SHARE} * greatest(c.reltuples, 0)
  OR pg_stat_get_dead_tuples(t.oid) > ${DEAD_ROWS} + ${DEAD_SHARE} * greatest(t.reltuples, 0))`;

/** The tables' names, quoted where they must be. Each goes with the table of its large values, `t`. */
async function namesOf(db: AnyDb, which: ReturnType<typeof sql>): Promise<readonly string[]> {
  const found = await db.execute(sql`
    SELECT c.oid::regclass::text AS name FROM pg_class c LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
    WHERE c.relkind = 'r' AND ${which}`);
  return rowsOf(found).map(({ name }) => String(name));
}
