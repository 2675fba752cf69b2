import { and, asc, eq } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import { ApiError } from "../domain/errors.ts";
import type { Random } from "../domain/random.ts";
import type { Database } from "../storage/database.ts";
import { isoTime } from "../storage/iso-time.ts";
import type { RegistryChanges } from "../storage/registry-changes.ts";
import { requireTenant, requireTenantId } from "../storage/require-tenant.ts";
import { apiKeyHash, apiKeyPrefix, newApiKey, randomText } from "./api-key.ts";
import type { KeyRecord } from "./registry.ts";
import { keys } from "./tables.ts";

const KEY_ID = /^key_[0-9A-Za-z]{16}$/;
/** Part of the id of every key with a checksum. Ids of former releases contain no zero. */
const CHECKED = "key_0";
const RANDOM_ID_CHARS = 15;

/** A `like` pattern for the ids of keys with a checksum. */
export const CHECKED_KEY_IDS = `${CHECKED.replace("_", "\\_")}%`;

export interface KeyRepositoryOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly clock: Clock;
  readonly random: Random;
}

export class KeyRepository {
  constructor(private readonly options: KeyRepositoryOptions) {}

  /** A new key is in no snapshot and in no cache of misses, since nobody has used it yet; so nothing is announced. */
  async create(tenantId: string): Promise<{ key_id: string; api_key: string }> {
    const { database, clock, random } = this.options;
    const id = `${CHECKED}${randomText(random, RANDOM_ID_CHARS)}`;
    const apiKey = newApiKey(random);
    await database.write(async (transaction) => {
      await requireTenant(transaction, tenantId);
      const createdAt = new Date(clock.nowMs());
      await transaction
        .insert(keys)
        .values({ id, tenantId, hash: apiKeyHash(apiKey), prefix: apiKeyPrefix(apiKey), createdAt });
    });
    return { key_id: id, api_key: apiKey };
  }

  /** Oldest first. */
  all(tenantId: string): Promise<readonly KeyRecord[]> {
    return this.options.database.read(async (db) => {
      await requireTenant(db, tenantId);
      const rows = await db
        .select()
        .from(keys)
        .where(eq(keys.tenantId, tenantId))
        .orderBy(asc(keys.createdAt), asc(keys.id));
      return rows.map(({ id, prefix, createdAt }) => ({ key_id: id, prefix, created_at: isoTime(createdAt) }));
    });
  }

  async revoke(tenantId: string, keyId: string): Promise<void> {
    requireTenantId(tenantId);
    if (!KEY_ID.test(keyId)) throw noSuchKey(tenantId);
    await this.options.changes.ofTenant(tenantId, async (transaction) => {
      const deleted = await transaction
        .delete(keys)
        .where(and(eq(keys.tenantId, tenantId), eq(keys.id, keyId)))
        .returning({ id: keys.id });
      if (deleted.length === 0) throw noSuchKey(tenantId);
    });
  }
}

function noSuchKey(tenantId: string): ApiError {
  return new ApiError(404, `The tenant "${tenantId}" has no such key.`);
}
