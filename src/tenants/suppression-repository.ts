import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import { ApiError } from "../domain/errors.ts";
import type { SuppressionReason } from "../domain/job.ts";
import type { Page } from "../domain/page.ts";
import type { Suppression, SuppressionRecord } from "../domain/suppressions.ts";
import type { Database } from "../storage/database.ts";
import { isoTime } from "../storage/iso-time.ts";
import { pageOf, rowsToRead } from "../storage/page-of.ts";
import { requireTenant } from "../storage/require-tenant.ts";
import { tenants } from "../storage/tables.ts";
import { suppressions } from "./tables.ts";

const CURSOR = /^[A-Za-z0-9_-]{1,512}$/;
const SHARD_PAGE_ROWS = 500;

/**
 * The list of recipients that must not be sent to. It is in no tenant snapshot, so changes are not announced: the caller
 * updates the queue's index.
 */
export class SuppressionRepository {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  put(tenantId: string, address: string, reason: SuppressionReason): Promise<SuppressionRecord> {
    return this.database.write(async (transaction) => {
      await requireTenant(transaction, tenantId);
      const [row] = await transaction
        .insert(suppressions)
        .values({ tenantId, address, reason, createdAt: new Date(this.clock.nowMs()) })
        .onConflictDoUpdate({ target: [suppressions.tenantId, suppressions.address], set: { reason } })
        .returning();
      if (row === undefined) throw new Error("a suppression was not stored");
      return recordOf(row);
    });
  }

  delete(tenantId: string, address: string): Promise<boolean> {
    return this.database.write(async (transaction) => {
      await requireTenant(transaction, tenantId);
      const deleted = await transaction
        .delete(suppressions)
        .where(and(eq(suppressions.tenantId, tenantId), eq(suppressions.address, address)))
        .returning({ address: suppressions.address });
      return deleted.length > 0;
    });
  }

  reason(tenantId: string, address: string): Promise<SuppressionReason | null> {
    return this.database.read(async (db) => {
      const [row] = await db
        .select({ reason: suppressions.reason })
        .from(suppressions)
        .where(and(eq(suppressions.tenantId, tenantId), eq(suppressions.address, address)));
      return row?.reason ?? null;
    });
  }

  /** Ordered by address. */
  page(tenantId: string, cursor: string | null, limit: number): Promise<Page<SuppressionRecord>> {
    return this.database.read(async (db) => {
      await requireTenant(db, tenantId);
      const after = cursor === null ? undefined : gt(suppressions.address, addressOf(cursor));
      const rows = await db
        .select()
        .from(suppressions)
        .where(and(eq(suppressions.tenantId, tenantId), after))
        .orderBy(asc(suppressions.address))
        .limit(rowsToRead(limit));
      return pageOf(rows, limit, { item: recordOf, cursor: (row) => cursorOf(row.address) });
    });
  }

  ofShard(shard: number, after: Suppression | null): Promise<readonly Suppression[]> {
    const { tenantId, address, reason } = suppressions;
    const beyond = after === null ? undefined : sql`(${tenantId}, ${address}) > (${after.tenantId}, ${after.address})`;
    return this.database.read((db) =>
      db
        .select({ tenantId, address, reason })
        .from(suppressions)
        .innerJoin(tenants, eq(tenants.id, tenantId))
        .where(and(eq(tenants.shard, shard), beyond))
        .orderBy(asc(tenantId), asc(address))
        .limit(SHARD_PAGE_ROWS),
    );
  }
}

/** An address can contain characters that a query would have to escape. */
function cursorOf(address: string): string {
  return Buffer.from(address, "utf8").toString("base64url");
}

function addressOf(cursor: string): string {
  const address = CURSOR.test(cursor) ? Buffer.from(cursor, "base64url").toString("utf8") : "";
  if (address === "" || /\p{Cc}/u.test(address)) {
    throw new ApiError(400, 'The value of "cursor" is not one that was given out.');
  }
  return address;
}

function recordOf({ address, reason, createdAt }: typeof suppressions.$inferSelect): SuppressionRecord {
  return { address, reason, created_at: isoTime(createdAt) };
}
