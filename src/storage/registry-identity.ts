import { sql } from "drizzle-orm";
import { pgTable, smallint, text, uuid } from "drizzle-orm/pg-core";
import { ConfigurationError } from "../domain/errors.ts";
import type { AnyDb } from "./database.ts";

/**
 * Identifies this registry, in one row: a random id, by which a queue recognizes the registry it belongs to, and the id of the
 * first key in MASTER_KEY at the last start.
 */
const identity = pgTable("registry_identity", {
  id: smallint("id").primaryKey(),
  registry: uuid("registry").notNull(),
  masterKey: text("master_key"),
});

/** Created apart from the migrations: a copy of the database is the same registry, an empty one is another. */
export async function ensureIdentity(db: AnyDb): Promise<void> {
  await db.execute(
    sql`create table if not exists registry_identity (id smallint primary key check (id = 1), registry uuid not null, master_key text)`,
  );
  await db.execute(
    sql`insert into registry_identity (id, registry) values (1, gen_random_uuid()) on conflict do nothing`,
  );
}

export interface RegistryIdentity {
  readonly registry: string;
  /** Null: no process has used it yet. */
  readonly masterKey: string | null;
}

/** Requires a database with the current schema. */
export async function readIdentity(db: AnyDb): Promise<RegistryIdentity> {
  const [row] = await db.select().from(identity);
  if (row === undefined) throw new ConfigurationError("The registry's identity is missing: run `waybill migrate`.");
  return { registry: row.registry, masterKey: row.masterKey };
}

/** Records which key seals from now on. Only for callers that hold the previously recorded key. */
export async function noteMasterKey(db: AnyDb, keyId: string): Promise<void> {
  await db.update(identity).set({ masterKey: keyId });
}
