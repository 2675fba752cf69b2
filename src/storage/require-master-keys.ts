import { sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { Database } from "./database.ts";
import type { Vault } from "./vault.ts";

/** Rejects with `ConfigurationError` if a secret in one of these columns needs a master key that the vault lacks. */
export async function requireMasterKeys(database: Database, vault: Vault, sealed: readonly PgColumn[]): Promise<void> {
  const keyIds = new Set<string>();
  for (const column of sealed) {
    const rows = await database.read((db) =>
      db.selectDistinct({ keyId: sql<string>`split_part(${column}, '.', 2)` }).from(column.table),
    );
    for (const { keyId } of rows) keyIds.add(keyId);
  }
  vault.requireKeys([...keyIds]);
}
