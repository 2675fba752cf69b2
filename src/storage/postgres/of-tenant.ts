import { and, eq, isNull } from "drizzle-orm";
import { type AllOfTenant, done, type Missing, missing } from "../../domain/store-result.ts";
import { TENANT_ID } from "../../domain/tenants/tenant.ts";
import { tenants } from "../tables.ts";
import type { AnyDb, Database } from "./database.ts";

/**
 * Returns the tenant's row, or null; a deleted tenant has none. Texts that cannot be a tenant's id are never sent to
 * PostgreSQL.
 */
export async function tenantRow(db: AnyDb, tenantId: string): Promise<typeof tenants.$inferSelect | null> {
  if (!TENANT_ID.test(tenantId)) return null;
  const [row] = await db
    .select()
    .from(tenants)
    .where(and(eq(tenants.id, tenantId), isNull(tenants.deletedAt)));
  return row ?? null;
}

/** Reads a tenant's data, if the tenant exists. */
export function readOfTenant<T>(
  database: Database,
  tenantId: string,
  read: (db: AnyDb) => Promise<T>,
): Promise<T | Missing<"tenant">> {
  return database.read(async (db) => {
    return (await tenantRow(db, tenantId)) === null ? missing("tenant") : read(db);
  });
}

/** Lists all rows that a tenant has in a table. */
export function listOfTenant<Row, Item>(
  database: Database,
  tenantId: string,
  { rows, item }: { rows(db: AnyDb): Promise<readonly Row[]>; item(row: Row): Item },
): Promise<AllOfTenant<Item>> {
  return readOfTenant(database, tenantId, async (db) => done((await rows(db)).map(item)));
}
