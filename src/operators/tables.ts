import { sql } from "drizzle-orm";
import { bigserial, check, index, integer, pgTable, text, timestamp } from "drizzle-orm/pg-core";
import type { OperatorRole } from "../domain/tenants/operator.ts";
import type { JsonObject } from "../domain/texts/json.ts";
import { createdAt, json, slug } from "../storage/tables.ts";

/** Operators with a token of their own. The token itself is not stored: `hash` is its SHA-256 in hex. */
export const operators = pgTable(
  "operators",
  {
    id: slug("id").primaryKey(),
    name: slug("name").notNull().unique(),
    role: text("role").$type<OperatorRole>().notNull(),
    hash: text("hash").notNull().unique(),
    createdAt: createdAt(),
    lastUsedAt: timestamp("last_used_at", { withTimezone: true, mode: "date" }),
  },
  (table) => [check("operators_role_known", sql`${table.role} in ('read', 'write')`)],
);

/**
 * One row per operator call that is not a read, and per change of a tenant, or several of them (`AuditShares`). Names and ids
 * are copies: a row outlives the operator and the tenant that it names.
 */
export const audit = pgTable(
  "audit",
  {
    id: bigserial("id", { mode: "number" }).primaryKey(),
    at: timestamp("at", { withTimezone: true, mode: "date" }).notNull(),
    operatorId: text("operator_id").notNull(),
    operator: slug("operator").notNull(),
    /** The operation's id in the API document. */
    action: text("action").notNull(),
    tenantId: slug("tenant_id"),
    /** The other parts that the path names, such as a key's id. */
    target: text("target"),
    detail: json<JsonObject>("detail").notNull(),
    /** The answer's status. Null: the call began, and its end is unknown. */
    status: integer("status"),
    requestId: text("request_id").notNull(),
    /** The number of a tenant's calls that it represents. The previous release adds rows without it. */
    calls: integer("calls").notNull().default(1),
  },
  (table) => [
    index("audit_by_time").on(table.at),
    index("audit_by_tenant").on(table.tenantId, table.id),
    index("audit_by_operator").on(table.operator, table.id),
  ],
);
