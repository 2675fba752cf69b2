import { sql } from "drizzle-orm";
import { union } from "drizzle-orm/pg-core";
import type { Database } from "./database.ts";
import { credentials, domains } from "./tables.ts";
import type { Vault } from "./vault.ts";

/** Rejects with `ConfigurationError` if a stored credential needs a master key that the vault lacks. */
export async function requireMasterKeys(database: Database, vault: Vault): Promise<void> {
  const rows = await database.read((db) =>
    union(
      db.selectDistinct({ keyId: sql<string>`split_part(${credentials.sealed}, '.', 2)` }).from(credentials),
      db.selectDistinct({ keyId: sql<string>`split_part(${domains.privateKey}, '.', 2)` }).from(domains),
    ),
  );
  vault.requireKeys(rows.map(({ keyId }) => keyId));
}
