import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { ContentSeal } from "../domain/content-seal.ts";
import type { Random } from "../domain/random.ts";
import type { Database } from "./postgres/database.ts";
import { openRegistryKey } from "./registry-key.ts";
import { Vault, VaultError } from "./vault.ts";

/** More than any kept content: a text that was forged to expand excessively is not opened. */
const TEXT_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Opens the seal under this registry's own key. Changing the master key re-encrypts only that key and not the contents,
 * so contents stay readable through a rotation until they expire.
 */
export async function openContentSeal(database: Database, vault: Vault, random: Random): Promise<ContentSeal> {
  return contentSeal(await openRegistryKey({ database, vault, random }, "failed-contents"), random);
}

/** Compresses with zstd, then encrypts with AES-256-GCM, bound to tenant and job. */
export function contentSeal(key: Uint8Array, random: Random): ContentSeal {
  const vault = new Vault([key], random);
  const locate = (tenantId: string, jobId: string) => ({ tenantId, kind: "failed job", field: jobId });
  return {
    seal: (tenantId, jobId, text) =>
      vault.seal(locate(tenantId, jobId), zstdCompressSync(Buffer.from(text)).toString("base64")),
    open(tenantId, jobId, sealed) {
      try {
        const packed = Buffer.from(vault.open(locate(tenantId, jobId), sealed), "base64");
        return zstdDecompressSync(packed, { maxOutputLength: TEXT_BYTES_MAX }).toString();
      } catch (error) {
        if (error instanceof VaultError) return null;
        throw error;
      }
    },
  };
}
