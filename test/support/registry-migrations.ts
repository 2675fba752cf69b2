import { sql } from "drizzle-orm";
import { readMigrationFiles } from "drizzle-orm/migrator";
import type { AnyDb } from "../../src/storage/postgres/database.ts";

export const MIGRATIONS = readMigrationFiles({
  migrationsFolder: new URL("../../src/storage/migrations", import.meta.url).pathname,
});

/** Creates the table of a database's applied migrations. */
export async function beginMigrations(db: AnyDb): Promise<void> {
  await db.execute(sql`create table registry_migrations (hash text primary key, applied_at timestamptz default now())`);
}

/** Runs one migration, as `migrate` does. */
export async function applyMigration(db: AnyDb, at: number): Promise<void> {
  for (const statement of MIGRATIONS[at]?.sql ?? []) await db.execute(sql.raw(statement));
  await db.execute(sql`insert into registry_migrations (hash) values (${MIGRATIONS[at]?.hash})`);
}
