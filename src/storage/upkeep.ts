import { type SQL, sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import { Repeated } from "../domain/repeated.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { AnyDb } from "./postgres/database.ts";
import { readRows } from "./postgres/rows-of.ts";

export interface UpkeepOptions {
  /** The embedded PostgreSQL, outside any transaction. */
  readonly db: AnyDb;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Returns the free space of the disk with its files. */
  freeBytes(): number;
}

const LOOK_MS = 15_000;
const LONG_LOOK_MS = 24 * 60 * 60 * 1000;
/**
 * Dead rows that a table may have, and a share of its rows: half the threshold of a server's autovacuum, because a pass
 * over a large table blocks the whole process (a third of a second for 270 MB of which a tenth is dead, almost no time
 * for less).
 */
const DEAD_ROWS = 500;
const DEAD_SHARE = 0.1;
/** Smaller tables, without their indexes, have too little to reclaim. */
const LARGE_BYTES = 8 * 1024 * 1024;
/** A tenth of the transaction ids after which PostgreSQL refuses to work. */
const OLD_TRANSACTIONS = 200_000_000;

/** The growth of the write-ahead log, or the time, between two checkpoints. */
const CHECKPOINT_BYTES = 16 * 1024 * 1024;
const CHECKPOINT_MS = 5 * 60 * 1000;
/**
 * The most that all of this may write. A checkpoint that runs out of disk space ends the process, which could go on
 * without one.
 */
const FREE_BYTES_MIN = 4 * CHECKPOINT_BYTES;
/** A log that has not grown by more needs no checkpoint, however much time passes. */
const QUIET_BYTES = 64 * 1024;

/**
 * Replaces a server's autovacuum and checkpointer. PGlite has one session and no background processes: its tables would
 * only grow, by a signed file with every update of a pass, and so would its write-ahead log, by every write.
 *
 * V1. Tables go one at a time, and other statements come between them.
 * V2. Large tables, and old ones, also go before the start and once a day: a process that ends takes the counts of dead
 *     rows with it. Before the start there are no callers to delay, however much a former process has left: a GB takes
 *     seconds.
 */
export class Upkeep {
  private readonly looks: Repeated;
  private longLookDueMs: number;
  private checkpointDueMs: number;

  constructor(private readonly options: UpkeepOptions) {
    this.looks = new Repeated(
      () => this.look(),
      options.clock,
      () => LOOK_MS,
    );
    this.longLookDueMs = options.clock.monotonicMs();
    this.checkpointDueMs = options.clock.monotonicMs() + CHECKPOINT_MS;
  }

  /** Checks repeatedly, beginning after a pause: the first check is its caller's. Safe to repeat. */
  start(): void {
    this.looks.startLater();
  }

  /** Waits for the current table. Safe to repeat. */
  stop(): Promise<void> {
    return this.looks.stop();
  }

  /** Does the work that is due. Never rejects. */
  async look(): Promise<void> {
    await this.attempt(async () => {
      if (!this.hasRoom()) return;
      await this.attempt(() => this.vacuum());
      // A log that is too long is independent of a table that cannot be cleaned.
      await this.attempt(() => this.checkpoint());
    });
  }

  private hasRoom(): boolean {
    const free = this.options.freeBytes();
    if (free >= FREE_BYTES_MIN) return true;
    this.options.telemetry.log("warn", "the registry's files are not kept small: their disk is full", { free });
    return false;
  }

  private async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.options.telemetry.log("warn", "the registry's files could not be kept small", { error: String(error) });
    }
  }

  private async vacuum(): Promise<void> {
    const { clock, db } = this.options;
    const isLong = clock.monotonicMs() >= this.longLookDueMs;
    if (isLong) this.longLookDueMs = clock.monotonicMs() + LONG_LOOK_MS;
    // A session reports the counts of its last statements with a delay, which never ends in a quiet one.
    await db.execute(sql`SELECT pg_stat_force_next_flush()`);
    for (const name of await listTableNames(db, isLong ? IS_LARGE_OR_OLD : IS_WORN)) {
      if (this.looks.isStopping) return;
      await db.execute(sql`VACUUM ${sql.raw(name)}`);
    }
  }

  private async checkpoint(): Promise<void> {
    const { clock, db } = this.options;
    const least = clock.monotonicMs() >= this.checkpointDueMs ? QUIET_BYTES : CHECKPOINT_BYTES;
    const [log] = readRows(await db.execute(LOG_BYTES));
    if (Number(log?.["bytes"]) <= least) return;
    await db.execute(sql`CHECKPOINT`);
    this.checkpointDueMs = clock.monotonicMs() + CHECKPOINT_MS;
  }
}

/** The part of the log that a start after a crash would have to replay. */
const LOG_BYTES = sql`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn) AS bytes FROM pg_control_checkpoint()`;

const IS_WORN = sql`
  pg_stat_get_dead_tuples(c.oid) > ${DEAD_ROWS} + ${DEAD_SHARE} * greatest(c.reltuples, 0)
  OR pg_stat_get_dead_tuples(t.oid) > ${DEAD_ROWS} + ${DEAD_SHARE} * greatest(t.reltuples, 0)`;
const IS_LARGE_OR_OLD = sql`
  pg_relation_size(c.oid) + coalesce(pg_relation_size(t.oid), 0) > ${LARGE_BYTES} OR age(c.relfrozenxid) > ${OLD_TRANSACTIONS}
  OR age(t.relfrozenxid) > ${OLD_TRANSACTIONS}`;

/** Returns the tables' names, quoted if necessary. Each is processed with the table of its large values, `t`. */
async function listTableNames(db: AnyDb, which: SQL): Promise<readonly string[]> {
  const found = await db.execute(sql`
    SELECT c.oid::regclass::text AS name FROM pg_class c LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
    WHERE c.relkind = 'r' AND (${which})`);
  return readRows(found).map(({ name }) => String(name));
}
