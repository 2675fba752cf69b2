import { eq } from "drizzle-orm";
import { TENANT_ID } from "../domain/tenant.ts";
import type { AnyDb } from "./database.ts";
import { noSuchTenant } from "./no-such-tenant.ts";
import { tenants } from "./tables.ts";

/** @throws ApiError 404 if the text cannot be a tenant's id. PostgreSQL never sees it in that case. */
export function requireTenantId(tenantId: string): void {
  if (!TENANT_ID.test(tenantId)) throw noSuchTenant(tenantId);
}

/** The tenant's row. @throws ApiError 404 if there is none. */
export async function requireTenant(db: AnyDb, tenantId: string): Promise<typeof tenants.$inferSelect> {
  requireTenantId(tenantId);
  const [row] = await db.select().from(tenants).where(eq(tenants.id, tenantId));
  if (row === undefined) throw noSuchTenant(tenantId);
  return row;
}
