import { and, asc, eq, getTableColumns, gt, gte, inArray, lt, or, sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import type { SuppressionReason } from "../domain/jobs/job.ts";
import { type Done, done, type Full, full, type Missing, missing, type PageOfTenant } from "../domain/store-result.ts";
import type { RecipientIndex } from "../domain/tenants/recipient-index.ts";
import {
  readSuppressionName,
  type Suppression,
  type SuppressionRecord,
  suppressionName,
} from "../domain/tenants/suppressions.ts";
import type { AnyDb, Database } from "../storage/postgres/database.ts";
import { isoTime } from "../storage/postgres/iso-time.ts";
import { readOfTenant, tenantRow } from "../storage/postgres/of-tenant.ts";
import { buildPage, rowsToRead } from "../storage/postgres/page-of.ts";
import { tenants } from "../storage/tables.ts";
import { ownLimits } from "./limits.ts";
import type { ErasedNames } from "./registry.ts";
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
    private readonly recipients: Pick<RecipientIndex, "erasedName">,
    private readonly clock: Clock,
  ) {}

  put(
    tenantId: string,
    address: string,
    reason: SuppressionReason,
  ): Promise<Done<SuppressionRecord> | Missing<"tenant">> {
    return this.database.write(async (transaction) => {
      if ((await tenantRow(transaction, tenantId)) === null) return missing("tenant");
      return done((await this.store(transaction, { tenantId, address, reason })).record);
    });
  }

  /** Within the tenant's share. */
  putOwn(
    tenantId: string,
    address: string,
    reason: SuppressionReason,
  ): Promise<Done<SuppressionRecord> | Missing<"tenant"> | Full> {
    return this.database.write(async (transaction) => {
      if ((await tenantRow(transaction, tenantId)) === null) return missing("tenant");
      const { record, name, isNew } = await this.store(transaction, { tenantId, address, reason });
      if (!isNew || (await takeRoom(transaction, tenantId))) return done(record);
      await transaction.delete(suppressions).where(named(tenantId, [name]));
      return full(ownLimits.suppressionsMax, "suppressions that it added itself");
    });
  }

  private async store(
    transaction: AnyDb,
    { tenantId, address, reason }: Suppression,
  ): Promise<{ readonly record: SuppressionRecord; readonly name: string; readonly isNew: boolean }> {
    // The address of an erased recipient is not stored again, on whatever topic the recipient was on the list.
    const erased = this.recipients.erasedName(tenantId, address);
    const person = readSuppressionName(erased).address;
    const [known] = await transaction
      .select({ address: suppressions.address })
      .from(suppressions)
      .where(ofPerson(tenantId, person))
      .limit(1);
    const [row] = await transaction
      .insert(suppressions)
      .values({
        tenantId,
        address: known === undefined ? address : erased,
        reason,
        createdAt: new Date(this.clock.nowMs()),
      })
      .onConflictDoUpdate({ target: [suppressions.tenantId, suppressions.address], set: { reason } })
      // A row that was there has been locked for its change.
      .returning({ ...getTableColumns(suppressions), isNew: sql<boolean>`xmax = 0` });
    if (row === undefined) throw new Error("a suppression was not stored");
    return { record: toRecord(row), name: row.address, isNew: row.isNew };
  }

  /** `reason`: only if listed for this reason. */
  delete(tenantId: string, address: string, reason?: SuppressionReason): Promise<Done<boolean> | Missing<"tenant">> {
    return this.database.write(async (transaction) => {
      if ((await tenantRow(transaction, tenantId)) === null) return missing("tenant");
      const deleted = await transaction
        .delete(suppressions)
        .where(
          and(
            named(tenantId, [address, this.recipients.erasedName(tenantId, address)]),
            reason === undefined ? undefined : eq(suppressions.reason, reason),
          ),
        )
        .returning({ address: suppressions.address });
      if (deleted.length > 0) await giveRoom(transaction, tenantId);
      return done(deleted.length > 0);
    });
  }

  erase(tenantId: string, address: string, isAdded: boolean): Promise<Done<ErasedNames> | Missing<"tenant">> {
    return this.database.write(async (transaction) => {
      if ((await tenantRow(transaction, tenantId)) === null) return missing("tenant");
      const rows = await transaction.delete(suppressions).where(ofPerson(tenantId, address)).returning();
      const isListed = rows.some((row) => row.address === address);
      const added = { tenantId, address, reason: "manual", createdAt: new Date(this.clock.nowMs()) } as const;
      const erased = this.recipients.erasedName(tenantId, address);
      const renamed = (isAdded && !isListed ? [...rows, added] : rows).map((row) => ({
        ...row,
        address: this.recipients.erasedName(tenantId, row.address),
      }));
      if (renamed.length > 0) await transaction.insert(suppressions).values(renamed).onConflictDoNothing();
      // Includes entries that an earlier call renamed before it died.
      const listed = await transaction
        .select({ name: suppressions.address })
        .from(suppressions)
        .where(ofPerson(tenantId, erased));
      const names = listed.map(({ name }) => suppressionName(address, readSuppressionName(name).topic));
      return done({ rows: rows.length, names });
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

  /** Ordered by address, then topic. */
  page(
    tenantId: string,
    cursor: string | null,
    limit: number,
    address?: string,
  ): Promise<PageOfTenant<SuppressionRecord>> {
    return readOfTenant(this.database, tenantId, async (db) => {
      const last = cursor === null ? null : decodeCursor(cursor);
      if (cursor !== null && last === null) return { kind: "invalid_cursor" };
      const after = last === null ? undefined : gt(suppressions.address, last);
      const of = address === undefined ? eq(suppressions.tenantId, tenantId) : this.ofOne(tenantId, address);
      const rows = await db
        .select()
        .from(suppressions)
        .where(and(of, after))
        .orderBy(asc(suppressions.address))
        .limit(rowsToRead(limit));
      return done(buildPage(rows, limit, { item: toRecord, cursor: (row) => encodeCursor(row.address) }));
    });
  }

  private ofOne(tenantId: string, address: string) {
    return or(ofPerson(tenantId, address), ofPerson(tenantId, this.recipients.erasedName(tenantId, address)));
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

/*
 * The tenant's share is a number on its row, because counting a million rows at each call would be too slow. It does not matter
 * whose entry is removed: beside the entries of others, the list never exceeds the share. The list's row is locked first, then
 * the tenant's.
 */

/** Reserves one entry of the share; returns whether one was free. */
async function takeRoom(transaction: AnyDb, tenantId: string): Promise<boolean> {
  const taken = await transaction
    .update(tenants)
    .set({ ownSuppressions: sql`${tenants.ownSuppressions} + 1` })
    .where(and(eq(tenants.id, tenantId), lt(tenants.ownSuppressions, ownLimits.suppressionsMax)))
    .returning({ id: tenants.id });
  return taken.length > 0;
}

async function giveRoom(transaction: AnyDb, tenantId: string): Promise<void> {
  await transaction
    .update(tenants)
    .set({ ownSuppressions: sql`${tenants.ownSuppressions} - 1` })
    .where(and(eq(tenants.id, tenantId), gt(tenants.ownSuppressions, 0)));
}

/** Matches the entries of one recipient, by address or erased name: for all messages and for each topic. */
function ofPerson(tenantId: string, address: string) {
  const { tenantId: tenant, address: name } = suppressions;
  // A topic follows behind a tab, which only a line break can follow: no address has controls.
  return and(eq(tenant, tenantId), gte(name, address), lt(name, `${address}\n`));
}

function named(tenantId: string, addresses: readonly string[]) {
  return and(eq(suppressions.tenantId, tenantId), inArray(suppressions.address, [...addresses]));
}

/** An address can contain characters that a query would have to escape. */
function encodeCursor(address: string): string {
  return Buffer.from(address, "utf8").toString("base64url");
}

/** Null: such a cursor was never given out. */
function decodeCursor(cursor: string): string | null {
  const address = CURSOR.test(cursor) ? Buffer.from(cursor, "base64url").toString("utf8") : "";
  return address === "" || /[^\P{Cc}\t]/u.test(address) ? null : address;
}

function toRecord({ address, reason, createdAt }: typeof suppressions.$inferSelect): SuppressionRecord {
  return { ...readSuppressionName(address), reason, created_at: isoTime(createdAt) };
}
