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
 * One row for each call of an operator that is no read, and for each change or several of a tenant (`AuditShares`). Names and ids are copies: a row outlives the operator and the tenant
 * that it names.
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
    /** The rest of what the path names, such as a key's id. */
    target: text("target"),
    detail: json<JsonObject>("detail").notNull(),
    /** Of the answer. Null: the call began, and nothing is known of its end. */
    status: integer("status"),
    requestId: text("request_id").notNull(),
    /** How many calls of a tenant it stands for. The previous release adds rows without it. */
    calls: integer("calls").notNull().default(1),
  },
  (table) => [
    index("audit_by_time").on(table.at),
    index("audit_by_tenant").on(table.tenantId, table.id),
    index("audit_by_operator").on(table.operator, table.id),
  ],
);
