import { and, desc, eq, gte, isNull, lt, lte, sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import { done, invalid, missing, type PageOfTenant } from "../domain/store-result.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import { checkText } from "../storage/postgres/check-text.ts";
import type { AnyDb, Database } from "../storage/postgres/database.ts";
import { isoTime } from "../storage/postgres/iso-time.ts";
import { readOfTenant, tenantRow } from "../storage/postgres/of-tenant.ts";
import { buildPage, rowsToRead } from "../storage/postgres/page-of.ts";
import { tenants, tokenMovements } from "../storage/tables.ts";
import type { MovedTokens, TokenMovement } from "./registry.ts";

const REASON_CHARS_MAX = 200;
const CURSOR = /^[1-9][0-9]{0,14}$/;

/** Wallet tokens. A balance is the sum of its movements: both change in one transaction, under the tenant's row lock. */
export class TokenRepository {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Snapshots do not include the balance, so other processes need not hear of this change. */
  async add(tenantId: string, amount: number, reason: string): Promise<MovedTokens> {
    if (!TENANT_ID.test(tenantId)) return missing("tenant");
    if (!Number.isSafeInteger(amount) || amount === 0) {
      return invalid('The field "amount" must be an integer other than 0.');
    }
    const fault = checkText(reason, { field: "reason", charsMax: REASON_CHARS_MAX });
    if (fault !== null) return fault;
    return this.database.write(async (transaction) => {
      const moved = await move(transaction, tenantId, amount);
      if (moved.kind !== "done") return moved;
      const { balance } = moved.value;
      const createdAt = new Date(this.clock.nowMs());
      await transaction
        .insert(tokenMovements)
        .values({ tenantId, kind: "adjustment", amount, reason, jobId: null, balance, createdAt });
      return moved;
    });
  }

  /** Newest first. */
  movements(tenantId: string, cursor: string | null, limit: number): Promise<PageOfTenant<TokenMovement>> {
    return readOfTenant(this.database, tenantId, async (db) => {
      if (cursor !== null && !CURSOR.test(cursor)) return { kind: "invalid_cursor" };
      const older = cursor === null ? undefined : lt(tokenMovements.id, Number(cursor));
      const rows = await db
        .select()
        .from(tokenMovements)
        .where(and(eq(tokenMovements.tenantId, tenantId), older))
        .orderBy(desc(tokenMovements.id))
        .limit(rowsToRead(limit));
      return done(buildPage(rows, limit, { item: toMovement, cursor: (row) => String(row.id) }));
    });
  }
}

/** Records the first movement of a tenant that was created with tokens. */
export async function recordOpeningBalance(
  transaction: AnyDb,
  { id, tokens, createdAt }: Pick<typeof tenants.$inferSelect, "id" | "tokens" | "createdAt">,
): Promise<void> {
  await transaction.insert(tokenMovements).values({
    tenantId: id,
    kind: "adjustment",
    amount: tokens,
    reason: "opening balance",
    jobId: null,
    balance: tokens,
    createdAt,
  });
}

/** Gives a tenant, whose row the transaction has locked, this balance; the movement is the difference. */
export async function setBalance(
  transaction: AnyDb,
  { tenantId, tokens, createdAt }: { readonly tenantId: string; readonly tokens: number; readonly createdAt: Date },
): Promise<void> {
  const row = await tenantRow(transaction, tenantId);
  const amount = tokens - (row?.tokens ?? 0);
  if (row === null || amount === 0) return;
  await transaction.update(tenants).set({ tokens }).where(eq(tenants.id, tenantId));
  await transaction
    .insert(tokenMovements)
    .values({ tenantId, kind: "adjustment", amount, reason: "balance set", jobId: null, balance: tokens, createdAt });
}

/** Checks and changes the balance in one statement, which locks the row before reading it. */
async function move(transaction: AnyDb, tenantId: string, amount: number): Promise<MovedTokens> {
  const balance = sql<number>`${tenants.tokens} + ${amount}::bigint`;
  const [moved] = await transaction
    .update(tenants)
    .set({ tokens: balance })
    .where(
      and(eq(tenants.id, tenantId), isNull(tenants.deletedAt), gte(balance, 0), lte(balance, Number.MAX_SAFE_INTEGER)),
    )
    .returning({ balance: tenants.tokens });
  if (moved !== undefined) return done(moved);
  const tenant = await tenantRow(transaction, tenantId);
  return tenant === null ? missing("tenant") : { kind: "out_of_range", balance: tenant.tokens };
}

function toMovement(row: typeof tokenMovements.$inferSelect): TokenMovement {
  const { amount, reason, jobId, balance, createdAt } = row;
  return { amount, reason, job_id: jobId, balance, created_at: isoTime(createdAt) };
}
