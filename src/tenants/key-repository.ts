import { and, asc, eq } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import type { Random } from "../domain/random.ts";
import { type AllOfTenant, type Done, done, type Missing, missing } from "../domain/store-result.ts";
import type { Database } from "../storage/database.ts";
import { isoTime } from "../storage/iso-time.ts";
import { listOfTenant, tenantRow } from "../storage/of-tenant.ts";
import { type RegistryChanges, Undone } from "../storage/registry-changes.ts";
import { apiKeyHash, apiKeyPrefix, newApiKey, randomText } from "./api-key.ts";
import type { KeyRecord, NewKey } from "./registry.ts";
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
  async create(tenantId: string): Promise<Done<NewKey> | Missing<"tenant">> {
    const { database, clock, random } = this.options;
    const id = `${CHECKED}${randomText(random, RANDOM_ID_CHARS)}`;
    const apiKey = newApiKey(random);
    return database.write(async (transaction) => {
      if ((await tenantRow(transaction, tenantId)) === null) return missing("tenant");
      const createdAt = new Date(clock.nowMs());
      await transaction
        .insert(keys)
        .values({ id, tenantId, hash: apiKeyHash(apiKey), prefix: apiKeyPrefix(apiKey), createdAt });
      return done({ key_id: id, api_key: apiKey });
    });
  }

  /** Oldest first. */
  all(tenantId: string): Promise<AllOfTenant<KeyRecord>> {
    return listOfTenant(this.options.database, tenantId, {
      rows: (db) =>
        db.select().from(keys).where(eq(keys.tenantId, tenantId)).orderBy(asc(keys.createdAt), asc(keys.id)),
      item: ({ id, prefix, createdAt }) => ({ key_id: id, prefix, created_at: isoTime(createdAt) }),
    });
  }

  revoke(tenantId: string, keyId: string): Promise<Done | Missing<"tenant" | "key">> {
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      if (!KEY_ID.test(keyId)) return new Undone(missing("key"));
      const deleted = await transaction
        .delete(keys)
        .where(and(eq(keys.tenantId, tenantId), eq(keys.id, keyId)))
        .returning({ id: keys.id });
      return deleted.length === 0 ? new Undone(missing("key")) : done(null);
    });
  }
}
