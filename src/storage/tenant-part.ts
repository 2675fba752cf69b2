import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { JsonObject } from "../domain/texts/json.ts";
import type { AnyDb } from "./postgres/database.ts";
import type { SealedColumn } from "./sealed-column.ts";
import type { tenants } from "./tables.ts";
import type { SecretPlace, Vault } from "./vault.ts";

/**
 * A channel's additions to the tenants in memory. The channel declares the rows it needs and how to parse them; the
 * `tenants` folder reads the rows of many tenants at once, in bounded pieces.
 */
export interface TenantPart<Members> {
  /** Its templates, by the channel's name in the table of templates. */
  readonly templates: Readonly<Record<string, StoredTemplates>>;
  /** The channel's own tables with rows that belong to tenants. */
  readonly tables: readonly TenantTable[];
  /** Columns of its own tables that the vault encrypts: a start without their master keys is refused. */
  readonly sealed?: readonly SealedColumn[];
  /** Returns the channel's members for a tenant whose rows have all been read. Throws if a secret does not open. */
  members(rows: TenantRows): Members;
}

/** Templates in the table that all channels share. `V`: the value kept in memory. */
export interface StoredTemplates<V = unknown> {
  /** Throws if the body is not in the channel's form. */
  parse(body: JsonObject): V;
}

/** A table whose rows belong to tenants. `V`: the value kept in memory. */
export interface TenantTable<V = unknown, R extends OwnedRow = OwnedRow> {
  readonly table: PgTable;
  /** Unique. Rows are read in this order. */
  readonly key: { readonly tenantId: PgColumn; readonly name: PgColumn };
  /** The column with most of a row's bytes. */
  readonly sized: PgColumn;
  select(db: AnyDb, where: SQL | undefined): Promise<readonly R[]>;
  /** Returns the row's name and value; null: the row is not kept in memory. Throws if it cannot be read. */
  parse(row: R, vault: Vault): readonly [name: string, value: V] | null;
}

export interface OwnedRow {
  readonly tenantId: string;
}

/** All rows read for one tenant. */
export interface TenantRows {
  readonly tenant: Omit<typeof tenants.$inferSelect, "plan">;
  /** Returns the templates by slug. */
  templates<V>(of: StoredTemplates<V>): ReadonlyMap<string, V>;
  /** Returns the rows' values by name. */
  rows<V>(of: TenantTable<V>): ReadonlyMap<string, V>;
  /** Decrypts and parses credentials; null if there are none at this place. Throws `VaultError`. */
  credentials<V>(place: SecretPlace, parse: (text: string) => V): V | null;
}
