import { createHash, createHmac } from "node:crypto";
import { eq } from "drizzle-orm";
import type { Random } from "../domain/random.ts";
import type { RecipientIndex } from "../domain/recipient-index.ts";
import { ERASED_NAME } from "../domain/suppressions.ts";
import type { Database } from "./database.ts";
import { registryKeys } from "./tables.ts";
import type { Vault } from "./vault.ts";

const NAME = "recipient-index";
const KEY_BYTES = 32;
const HASH_CHARS = 32;
const PLACE = { tenantId: "", kind: "registry", field: NAME };

/**
 * The index under this registry's own key, which the first process makes. It is kept sealed: another master key seals it
 * anew, and the hashes that are stored stay good. Rejects with `UnavailableError`, and with `VaultError` if it does not open.
 */
export async function openRecipientIndex(database: Database, vault: Vault, random: Random): Promise<RecipientIndex> {
  const made = Buffer.from(random.fill(new Uint8Array(KEY_BYTES))).toString("base64");
  const sealed = await database.write(async (transaction) => {
    await transaction
      .insert(registryKeys)
      .values({ name: NAME, sealed: vault.seal(PLACE, made) })
      .onConflictDoNothing();
    const [row] = await transaction.select().from(registryKeys).where(eq(registryKeys.name, NAME));
    if (row === undefined) throw new Error("the key of the recipient index was stored and is missing");
    return row.sealed;
  });
  return recipientIndex(Buffer.from(vault.open(PLACE, sealed), "base64"));
}

/** The first half of HMAC-SHA-256 (RFC 2104; truncated by its section 5), written as a UUID. */
export function recipientIndex(key: Uint8Array): RecipientIndex {
  const erasedNamesKey = (tenantId: string) =>
    createHmac("sha256", key).update(`erased names\0${tenantId}`).digest("hex");
  return {
    erasedNamesKey,
    erasedName: (tenantId, recipient) =>
      ERASED_NAME +
      createHash("sha1")
        .update(erasedNamesKey(tenantId) + recipient)
        .digest("hex"),
    hashOf(recipient) {
      const hex = createHmac("sha256", key).update(recipient).digest("hex").slice(0, HASH_CHARS);
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    },
  };
}
