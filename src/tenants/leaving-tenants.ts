import { and, asc, eq, isNotNull, isNull, sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import { type Done, done, type Missing } from "../domain/store-result.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { AnyDb, Database } from "../storage/postgres/database.ts";
import { readRows } from "../storage/postgres/rows-of.ts";
import type { RegistryChanges } from "../storage/registry-changes.ts";
import { tenants } from "../storage/tables.ts";
import type { LeavingTenant } from "./registry.ts";
import { keys } from "./tables.ts";

export interface LeavingTenantsOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly clock: Clock;
}

/**
 * Tables that keep a deleted tenant's rows: its bills, and its classes of Google passes, which another tenant could otherwise
 * claim and change.
 */
const KEPT = ["token_movements", "google_classes"];
/** Rows that one transaction removes. */
const PIECE_ROWS = 1_000;

/** Deleted tenants: their own rows stay, all rows that refer to them are removed. */
export class LeavingTenants {
  constructor(private readonly options: LeavingTenantsOptions) {}

  async delete(tenantId: string): Promise<Done<LeavingTenant> | Missing<"tenant">> {
    const deletedAt = new Date(this.options.clock.nowMs());
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      await transaction.delete(keys).where(eq(keys.tenantId, tenantId));
      const [row] = await transaction.update(tenants).set({ deletedAt }).where(eq(tenants.id, tenantId)).returning();
      if (row === undefined) throw new Error("a tenant that was locked is gone");
      return done(toLeaving(row));
    });
  }

  one(tenantId: string): Promise<LeavingTenant | null> {
    return this.options.database.read(async (db) => {
      if (!TENANT_ID.test(tenantId)) return null;
      const [row] = await db
        .select()
        .from(tenants)
        .where(and(eq(tenants.id, tenantId), isNotNull(tenants.deletedAt)));
      return row === undefined ? null : toLeaving(row);
    });
  }

  async all(limit: number): Promise<readonly LeavingTenant[]> {
    const rows = await this.options.database.read((db) =>
      db
        .select()
        .from(tenants)
        .where(and(isNotNull(tenants.deletedAt), isNull(tenants.removedAt)))
        .orderBy(asc(tenants.deletedAt))
        .limit(limit),
    );
    return rows.map(toLeaving);
  }

  /** Every table that refers to tenants is known to the database itself, so a new one is not forgotten. */
  removePiece(tenantId: string): Promise<boolean> {
    return this.options.database.write(async (transaction) => {
      const [row] = await transaction.select().from(tenants).where(eq(tenants.id, tenantId)).for("update");
      if (row === undefined || row.deletedAt === null) return false;
      for (const table of await tablesOfTenants(transaction)) {
        const removed = await transaction.execute(sql`
          DELETE FROM ${sql.identifier(table)} WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM ${sql.identifier(table)} WHERE tenant_id = ${tenantId} LIMIT ${PIECE_ROWS}
          )) RETURNING 1 AS one`);
        if (readRows(removed).length > 0) return false;
      }
      // Its name is on its bills.
      await transaction.update(tenants).set({ walletWebhookUrl: null }).where(eq(tenants.id, tenantId));
      return true;
    });
  }

  async removed(tenantId: string): Promise<void> {
    const removedAt = new Date(this.options.clock.nowMs());
    await this.options.database.write((transaction) =>
      transaction
        .update(tenants)
        .set({ removedAt })
        .where(and(eq(tenants.id, tenantId), isNotNull(tenants.deletedAt))),
    );
  }
}

async function tablesOfTenants(transaction: AnyDb): Promise<readonly string[]> {
  const found = await transaction.execute(sql`
    SELECT DISTINCT c.relname AS name FROM pg_constraint f JOIN pg_class c ON c.oid = f.conrelid
    WHERE f.contype = 'f' AND f.confrelid = 'tenants'::regclass ORDER BY 1`);
  return readRows(found)
    .map((row) => String(row["name"]))
    .filter((name) => !KEPT.includes(name));
}

function toLeaving({ id, shard, deletedAt, removedAt }: typeof tenants.$inferSelect): LeavingTenant {
  return { tenantId: id, shard, deletedAtMs: deletedAt?.getTime() ?? 0, isRemoved: removedAt !== null };
}
