import { boolean, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";
import { json, slug, tenantId } from "../../storage/tables.ts";

/** Tenants' own names for the chat provider's templates. */
export const aliases = pgTable(
  "aliases",
  {
    tenantId: tenantId(),
    alias: slug("alias").notNull(),
    metaName: text("meta_name").notNull(),
    languageCode: text("language_code"),
    /** The meaning of each position. */
    params: text("params").array().notNull(),
    /** `HeaderMedia`, for templates whose header has media. */
    header: json("header"),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.alias] })],
);

/** The chat provider's lists of the templates in tenants' own accounts. */
export const chatTemplates = pgTable(
  "chat_templates",
  {
    tenantId: tenantId(),
    /** The provider's id of the account. */
    accountId: slug("account_id").notNull(),
    readAt: timestamp("read_at", { withTimezone: true, mode: "date", precision: 3 }).notNull(),
    isComplete: boolean("is_complete").notNull(),
    /** By name: `TemplateVersion`, one a language. */
    templates: json("templates").notNull(),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.accountId] })],
);
