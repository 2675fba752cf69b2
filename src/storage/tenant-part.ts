import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { JsonObject } from "../domain/json.ts";
import type { AnyDb } from "./database.ts";
import type { tenants } from "./tables.ts";
import type { SecretPlace, Vault } from "./vault.ts";

/**
 * What a channel adds to the tenants in memory. The channel says which rows it needs and what becomes of each;
 * the tenants' room reads the rows of many tenants at once, in bounded pieces.
 */
export interface TenantPart<Members> {
  /** Its templates, by the channel's name in the table of templates. */
  readonly templates: Readonly<Record<string, StoredTemplates>>;
  /** The tables of its own that hold what belongs to tenants. */
  readonly tables: readonly TenantTable[];
  /** Its members of a tenant of which all rows are read. Throws where a secret does not open. */
  members(rows: TenantRows): Members;
}

/** Templates in the table that all channels share. `V`: what memory holds of one. */
export interface StoredTemplates<V = unknown> {
  /** Throws where the body is not what the channel writes. */
  parse(body: JsonObject): V;
}

/** A table whose rows belong to tenants. `V`: what memory holds of a row. */
export interface TenantTable<V = unknown, R extends OwnedRow = OwnedRow> {
  readonly table: PgTable;
  /** Unique. Rows are read in its order. */
  readonly key: { readonly tenantId: PgColumn; readonly name: PgColumn };
  /** The column that holds most of a row's bytes. */
  readonly sized: PgColumn;
  select(db: AnyDb, where: SQL | undefined): Promise<readonly R[]>;
  /** The row by its name; null: memory holds nothing of it. Throws where it cannot be read. */
  parse(row: R, vault: Vault): readonly [name: string, value: V] | null;
}

export interface OwnedRow {
  readonly tenantId: string;
}

/** All that was read of one tenant. */
export interface TenantRows {
  readonly tenant: Omit<typeof tenants.$inferSelect, "plan">;
  /** By slug. */
  templates<V>(of: StoredTemplates<V>): ReadonlyMap<string, V>;
  /** By name. */
  rows<V>(of: TenantTable<V>): ReadonlyMap<string, V>;
  /** Opens credentials and parses them; null: there are none at this place. Throws `VaultError`. */
  credentials<V>(place: SecretPlace, parse: (text: string) => V): V | null;
}
