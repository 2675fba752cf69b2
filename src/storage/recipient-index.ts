import { createHash, createHmac } from "node:crypto";
import type { Random } from "../domain/random.ts";
import type { RecipientIndex } from "../domain/tenants/recipient-index.ts";
import { ERASED_NAME, readSuppressionName, suppressionName } from "../domain/tenants/suppressions.ts";
import type { Database } from "./postgres/database.ts";
import { openRegistryKey } from "./registry-key.ts";
import type { Vault } from "./vault.ts";

const HASH_CHARS = 32;

/**
 * Opens the index under this registry's own key, so that another master key does not change the hashes. Rejects with
 * `UnavailableError`, and with `VaultError` if the key does not open.
 */
export async function openRecipientIndex(database: Database, vault: Vault, random: Random): Promise<RecipientIndex> {
  return recipientIndex(await openRegistryKey({ database, vault, random }, "recipient-index"));
}

/** Computes the first half of HMAC-SHA-256 (RFC 2104; truncated by its section 5), written as a UUID. */
export function recipientIndex(key: Uint8Array): RecipientIndex {
  const erasedNamesKey = (tenantId: string) =>
    createHmac("sha256", key).update(`erased names\0${tenantId}`).digest("hex");
  return {
    erasedNamesKey,
    erasedName(tenantId, name) {
      const { address, topic } = readSuppressionName(name);
      const hex = createHash("sha1")
        .update(erasedNamesKey(tenantId) + address)
        .digest("hex");
      return suppressionName(ERASED_NAME + hex, topic);
    },
    hashRecipient(recipient) {
      const hex = createHmac("sha256", key).update(recipient).digest("hex").slice(0, HASH_CHARS);
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    },
  };
}
