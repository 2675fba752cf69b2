import { asc, lte, type SQL, sql } from "drizzle-orm";
import type { AnyDb } from "../storage/postgres/database.ts";
import { keys } from "./tables.ts";

/** Keys per tenant, so that one tenant with many of them does not hide the others'. */
const OF_TENANT_MAX = 3;

export interface ExpiringKey {
  readonly tenantId: string;
  /** Its prefix if it has none. */
  readonly name: string;
  readonly expiresAtMs: number;
}

/** Returns each tenant's first keys among those that match `where`, which all expire, soonest first. */
export async function soonestKeys(db: AnyDb, where: SQL | undefined, limit: number): Promise<readonly ExpiringKey[]> {
  const place = sql<number>`row_number() OVER (PARTITION BY ${keys.tenantId} ORDER BY ${keys.expiresAt}, ${keys.id})`;
  const placed = db
    .select({
      tenantId: keys.tenantId,
      name: keys.name,
      prefix: keys.prefix,
      expiresAt: keys.expiresAt,
      place: place.as("place"),
    })
    .from(keys)
    .where(where)
    .as("placed");
  const rows = await db
    .select()
    .from(placed)
    .where(lte(placed.place, OF_TENANT_MAX))
    .orderBy(asc(placed.expiresAt))
    .limit(limit);
  return rows.flatMap(({ tenantId, name, prefix, expiresAt }) =>
    expiresAt === null ? [] : [{ tenantId, name: name ?? prefix, expiresAtMs: expiresAt.getTime() }],
  );
}
