import { getTableColumns, sql } from "drizzle-orm";
import { bigint, index, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import type { ChannelName, SuppressionReason } from "../domain/jobs/job.ts";
import type { Scope } from "../domain/tenants/tenant.ts";
import { createdAt, exactJson, json, slug, tenantId } from "../storage/tables.ts";

/** API keys. The key itself is not stored: `hash` is its SHA-256 in hex. */
export const keys = pgTable(
  "keys",
  {
    id: slug("id").primaryKey(),
    tenantId: tenantId(),
    hash: text("hash").notNull().unique(),
    prefix: text("prefix").notNull(),
    name: text("name"),
    createdAt: createdAt(),
    /** Null: it does not expire. */
    expiresAt: timestamp("expires_at", { withTimezone: true, mode: "date" }),
    lastUsedAt: timestamp("last_used_at", { withTimezone: true, mode: "date" }),
    /** Null: all scopes, as in the previous release. */
    scopes: text("scopes").array().$type<Scope[]>(),
  },
  (table) => [index("keys_by_tenant").on(table.tenantId)],
);

/** A tenant's own provider credentials, sealed by the vault. */
export const credentials = pgTable(
  "credentials",
  {
    tenantId: tenantId(),
    kind: slug("kind").notNull(),
    sealed: text("sealed").notNull(),
    // Null: the previous release stored them.
    createdAt: timestamp("created_at", { withTimezone: true, mode: "date" }),
    changedAt: timestamp("changed_at", { withTimezone: true, mode: "date" }),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.kind] })],
);

export const templates = pgTable(
  "templates",
  {
    tenantId: tenantId(),
    slug: slug("slug").notNull(),
    channel: text("channel").$type<ChannelName>().notNull(),
    /** The template's content, in the channel's own form. */
    body: json("body").notNull(),
    /**
     * Length of the body as text, which bounds a tenant's templates. The database computes it for every release that writes.
     */
    bytes: integer("bytes").generatedAlwaysAs(sql`octet_length("body"::text)`),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.slug] })],
);

/** A template's columns for reading. */
export const TEMPLATE_COLUMNS = { ...getTableColumns(templates), body: exactJson(templates.body) };

/** Recipients that must not be sent to, by normalized address or erased name. The queue keeps an index of this list. */
export const suppressions = pgTable(
  "suppressions",
  {
    tenantId: tenantId(),
    address: slug("address").notNull(),
    reason: text("reason").$type<SuppressionReason>().notNull(),
    createdAt: createdAt(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.address] })],
);

/** Usage, counted as requests are answered, by UTC month (`YYYY-MM`). Rows outlive their tenant: its usage is still billed. */
export const usageCounts = pgTable(
  "usage_counts",
  {
    tenantId: slug("tenant_id").notNull(),
    month: slug("month").notNull(),
    apiCalls: bigint("api_calls", { mode: "number" }).notNull(),
    accepted: bigint("accepted", { mode: "number" }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.month] })],
);
