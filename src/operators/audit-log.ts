import { and, desc, eq, gte, inArray, lt, type SQL, sql } from "drizzle-orm";
import type { Page } from "../domain/page.ts";
import type { RuntimePorts } from "../domain/runtime-ports.ts";
import { type Done, done, type InvalidCursor } from "../domain/store-result.ts";
import type { JsonObject } from "../domain/texts/json.ts";
import type { AuditedCall, AuditedEnd, AuditLog } from "../http/audit.ts";
import { OldRows } from "../storage/old-rows.ts";
import type { Database } from "../storage/postgres/database.ts";
import { buildPage, rowsToRead } from "../storage/postgres/page-of.ts";
import { AuditShares } from "./audit-shares.ts";
import { audit } from "./tables.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** How long a row is kept. */
export const AUDIT_KEPT_DAYS = 400;
const PIECES_MAX = 100;
/** Stands for the key where calls with several keys are summed up. */
const SEVERAL = "several";

export interface AuditRecord {
  readonly audit_id: number;
  /** ISO 8601 UTC, in milliseconds. */
  readonly at: string;
  readonly operator_id: string;
  readonly operator: string;
  readonly action: string;
  readonly tenant: string | null;
  readonly target: string | null;
  readonly detail: JsonObject;
  readonly status: number | null;
  readonly request_id: string;
  readonly calls: number;
}

/** Absent members let everything pass. `toMs` is exclusive. */
export interface AuditFilter {
  readonly operator?: string | null;
  readonly tenant?: string | null;
  readonly action?: string | null;
  readonly fromMs?: number | null;
  readonly toMs?: number | null;
}

export interface AuditOptions extends RuntimePorts {
  readonly database: Database;
}

/** The audit log in the registry. Rows are kept for 400 days. */
export class AuditRepository implements AuditLog {
  private readonly shares: AuditShares;

  constructor(private readonly options: AuditOptions) {
    this.shares = new AuditShares(options.clock);
  }

  /** Removes old rows, by this time. */
  oldRows(agreedMs: () => Promise<number>): OldRows {
    return new OldRows({
      ...this.options,
      agreedMs,
      name: "old rows of the audit log",
      piecesMax: PIECES_MAX,
      remove: async (transaction, limit, nowMs) => {
        const before = new Date(nowMs - AUDIT_KEPT_DAYS * DAY_MS);
        const old = transaction.select({ id: audit.id }).from(audit).where(lt(audit.at, before));
        const removed = await transaction
          .delete(audit)
          .where(inArray(audit.id, old.orderBy(audit.at).limit(limit)))
          .returning({ id: audit.id });
        return removed.length;
      },
    });
  }

  async begin(call: AuditedCall): Promise<(end: AuditedEnd) => Promise<void>> {
    const { operator, action, tenantId, target, requestId } = call;
    const { database, clock } = this.options;
    const at = new Date(clock.nowMs());
    const named = { operatorId: operator.id, operator: operator.name };
    const [row] = await database.write((transaction) =>
      transaction
        .insert(audit)
        .values({ at, ...named, action, tenantId, target, detail: {}, requestId })
        .returning({ id: audit.id }),
    );
    if (row === undefined) throw new Error("the audit log took no row");
    return (end) => this.end(row.id, call, end);
  }

  private async end(id: number, call: AuditedCall, end: AuditedEnd): Promise<void> {
    const { database, telemetry } = this.options;
    const { status, detail, newTenantId } = end;
    const { isTenants, tenantId, action } = call;
    const sum = isTenants === true && tenantId !== null ? this.shares.sumFor(tenantId, { action, status, id }) : null;
    try {
      if (sum !== null) return await this.addTo(sum, id, call);
      await database.write((transaction) =>
        transaction
          .update(audit)
          .set({ status, detail, ...(newTenantId === null ? null : { tenantId: newTenantId }) })
          .where(eq(audit.id, id)),
      );
    } catch (error) {
      // The row stays, with the call's end unknown.
      telemetry.count("audit_ends_lost");
      telemetry.log("error", "the end of a call could not be written to the audit log", {
        audit: id,
        status,
        error: String(error),
      });
    }
  }

  /** Counts the call of the row `id` in another row, in place of its own. */
  private async addTo(sum: number, id: number, { operator }: AuditedCall): Promise<void> {
    const isSame = sql`${audit.operatorId} = ${operator.id}`;
    await this.options.database.write(async (transaction) => {
      await transaction.delete(audit).where(eq(audit.id, id));
      await transaction
        .update(audit)
        .set({
          calls: sql`${audit.calls} + 1`,
          operatorId: sql`case when ${isSame} then ${audit.operatorId} else ${SEVERAL} end`,
          operator: sql`case when ${isSame} then ${audit.operator} else ${SEVERAL} end`,
        })
        .where(eq(audit.id, sum));
    });
  }

  /** Newest first. */
  async page(
    filter: AuditFilter,
    cursor: string | null,
    limit: number,
  ): Promise<Done<Page<AuditRecord>> | InvalidCursor> {
    if (cursor !== null && !/^[1-9]\d{0,14}$/.test(cursor)) return { kind: "invalid_cursor" };
    const before = cursor === null ? undefined : lt(audit.id, Number(cursor));
    const rows = await this.options.database.read((db) =>
      db
        .select()
        .from(audit)
        .where(and(before, ...toConditions(filter)))
        .orderBy(desc(audit.id))
        .limit(rowsToRead(limit)),
    );
    return done(buildPage(rows, limit, { item: toRecord, cursor: ({ id }) => String(id) }));
  }
}

function toConditions({ operator, tenant, action, fromMs, toMs }: AuditFilter): readonly (SQL | undefined)[] {
  return [
    given(operator, (name) => eq(audit.operator, name)),
    given(tenant, (id) => eq(audit.tenantId, id)),
    given(action, (name) => eq(audit.action, name)),
    given(fromMs, (ms) => gte(audit.at, new Date(ms))),
    given(toMs, (ms) => lt(audit.at, new Date(ms))),
  ];
}

function given<T>(value: T | null | undefined, condition: (value: T) => SQL): SQL | undefined {
  return value === null || value === undefined ? undefined : condition(value);
}

function toRecord(row: typeof audit.$inferSelect): AuditRecord {
  return {
    audit_id: row.id,
    at: row.at.toISOString(),
    operator_id: row.operatorId,
    operator: row.operator,
    action: row.action,
    tenant: row.tenantId,
    target: row.target,
    detail: row.detail,
    status: row.status,
    request_id: row.requestId,
    calls: row.calls,
  };
}
