import { sql } from "drizzle-orm";
import { readMigrationFiles } from "drizzle-orm/migrator";
import { pgTable, text, timestamp } from "drizzle-orm/pg-core";
import { ConfigurationError } from "../../domain/errors.ts";
import { ensureIdentity } from "../registry-identity.ts";
import type { AnyDb } from "./database.ts";
import { sqlState } from "./sql-state.ts";

/** The migrations applied to this database. */
const applied = pgTable("registry_migrations", {
  hash: text("hash").primaryKey(),
  appliedAt: timestamp("applied_at", { withTimezone: true }).notNull().defaultNow(),
});

/** An arbitrary number, the same in all our processes. */
const MIGRATION_LOCK = 8_246_011;

/**
 * A migration that waits for a table thereby gives way before PostgreSQL ends another transaction because of a
 * deadlock, after a second.
 */
const TABLE_WAIT_MS = 500;
const GIVEN_WAY_MAX = 240;
/** The pause between two tries, in which the statements that waited for the migration proceed. */
const PAUSE_SECONDS = 0.5;

/**
 * Brings the database to the current schema, one process at a time. Has no effect if the schema is current. Each
 * migration has a transaction of its own, so none locks a table while it waits for the next one's: a former release may
 * be at work meanwhile. A new database gets all of them in one. Rejects with `ConfigurationError` if a later version of
 * the program has migrated it.
 *
 * Not drizzle's own migrator, which would run twice in two processes that start together.
 */
export async function migrate(db: AnyDb): Promise<void> {
  const migrations = ownMigrations();
  for (let givenWay = 0; ; ) {
    try {
      if ((await db.transaction((transaction) => migrateFurther(transaction, migrations))) === "current") return;
    } catch (error) {
      givenWay += 1;
      if (!GIVES_WAY.has(sqlState(error).state ?? "") || givenWay > GIVEN_WAY_MAX) throw error;
      await db.execute(sql`select pg_sleep(${PAUSE_SECONDS})`);
    }
  }
}

/** `lock_not_available` and `deadlock_detected`. */
const GIVES_WAY: ReadonlySet<string> = new Set(["55P03", "40P01"]);

/** Runs the first migration that is missing; all of them in a new database. Resolves to whether more are missing. */
async function migrateFurther(
  transaction: AnyDb,
  migrations: ReturnType<typeof ownMigrations>,
): Promise<"current" | "more"> {
  // The session's timeout is meant for requests; migrating a large table or waiting for another process may take longer.
  await transaction.execute(sql`set local statement_timeout = 0`);
  await transaction.execute(sql`select pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`);
  await transaction.execute(
    sql`create table if not exists registry_migrations (hash text primary key, applied_at timestamptz not null default now())`,
  );
  const known = new Set(migrations.map(({ hash }) => hash));
  const present = new Set((await transaction.select({ hash: applied.hash }).from(applied)).map(({ hash }) => hash));
  if (!present.isSubsetOf(known)) {
    throw new ConfigurationError(
      "The database belongs to a later version of Waybill: start that one, or restore a backup.",
    );
  }
  const missing = migrations.filter(({ hash }) => !present.has(hash));
  const next = present.size === 0 ? missing : missing.slice(0, 1);
  if (next.length > 0) await transaction.execute(sql.raw(`set local lock_timeout = ${TABLE_WAIT_MS}`));
  for (const migration of next) {
    for (const statement of migration.sql) await transaction.execute(sql.raw(statement));
    await transaction.insert(applied).values({ hash: migration.hash });
  }
  if (next.length < missing.length) return "more";
  await ensureIdentity(transaction);
  return "current";
}

/**
 * Requires every migration of this program. Returns how many more the database has: migrations of a later version,
 * which may run beside this one during an upgrade. Rejects with `ConfigurationError` if one is missing.
 */
export async function requireSchema(db: AnyDb): Promise<{ readonly later: number }> {
  const known = new Set(ownMigrations().map(({ hash }) => hash));
  try {
    const present = new Set((await db.select({ hash: applied.hash }).from(applied)).map(({ hash }) => hash));
    // Created separately from the migrations; this column was added later.
    await db.execute(sql`select counted_at from registry_identity limit 1`);
    if (!known.isSubsetOf(present)) throw NOT_CURRENT;
    return { later: present.difference(known).size };
  } catch (error) {
    throw NOT_THERE.has(sqlState(error).state ?? "") ? NOT_CURRENT : error;
  }
}

/** `undefined_table` and `undefined_column`. */
const NOT_THERE: ReadonlySet<string> = new Set(["42P01", "42703"]);
const NOT_CURRENT = new ConfigurationError(
  "The database in DATABASE_URL has no current schema: run `waybill migrate` (npm run migrate).",
);

function ownMigrations() {
  return readMigrationFiles({ migrationsFolder: `${import.meta.dir}/../migrations` });
}
