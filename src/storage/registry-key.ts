import { eq } from "drizzle-orm";
import type { Random } from "../domain/random.ts";
import type { Database } from "./postgres/database.ts";
import { registryKeys } from "./tables.ts";
import type { Vault } from "./vault.ts";

const KEY_BYTES = 32;

export interface RegistryKeyPorts {
  readonly database: Database;
  readonly vault: Vault;
  readonly random: Random;
}

/**
 * Opens a key of this registry's own, which the first process creates. It is stored encrypted: a change of the master
 * key re-encrypts it, and data made with it stays valid. Rejects with `UnavailableError`, and with `VaultError` if it
 * does not open.
 */
export async function openRegistryKey(
  { database, vault, random }: RegistryKeyPorts,
  name: string,
): Promise<Uint8Array> {
  const place = { tenantId: "", kind: "registry", field: name };
  const made = Buffer.from(random.fill(new Uint8Array(KEY_BYTES))).toString("base64");
  const sealed = await database.write(async (transaction) => {
    await transaction
      .insert(registryKeys)
      .values({ name, sealed: vault.seal(place, made) })
      .onConflictDoNothing();
    const [row] = await transaction.select().from(registryKeys).where(eq(registryKeys.name, name));
    if (row === undefined) throw new Error("a key of the registry was stored and is missing");
    return row.sealed;
  });
  return Buffer.from(vault.open(place, sealed), "base64");
}
