import { pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { json, slug, tenantId } from "../../storage/tables.ts";

/** Tenants' own names for the chat provider's templates. */
export const aliases = pgTable(
  "aliases",
  {
    tenantId: tenantId(),
    alias: slug("alias").notNull(),
    metaName: text("meta_name").notNull(),
    languageCode: text("language_code"),
    /** What each position stands for. */
    params: text("params").array().notNull(),
    /** `HeaderMedia`, for templates whose header has media. */
    header: json("header"),
  },
  (table) => [primaryKey({ columns: [table.tenantId, table.alias] })],
);
