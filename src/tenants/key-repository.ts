import { and, asc, eq, gt, isNull, or, sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import type { Random } from "../domain/random.ts";
import { type AllOfTenant, type Done, done, type Full, full, type Missing, missing } from "../domain/store-result.ts";
import { SCOPES } from "../domain/tenants/tenant.ts";
import { newUses, type Use } from "../storage/last-uses.ts";
import type { AnyDb, Database } from "../storage/postgres/database.ts";
import { isoTime } from "../storage/postgres/iso-time.ts";
import { listOfTenant, tenantRow } from "../storage/postgres/of-tenant.ts";
import { type RegistryChanges, Undone } from "../storage/registry-changes.ts";
import { tenants } from "../storage/tables.ts";
import { apiKeyHash, apiKeyPrefix, newApiKey, randomText } from "./api-key.ts";
import { ownLimits } from "./limits.ts";
import type { KeyOptions, KeyRecord, LastKey, NewKey } from "./registry.ts";
import { keys } from "./tables.ts";

const KEY_ID = /^key_[0-9A-Za-z]{16}$/;
/** Part of the id of every key with a checksum. Ids of former releases contain no zero. */
const CHECKED = "key_0";
const RANDOM_ID_CHARS = 15;

/** A `like` pattern for the ids of keys with a checksum. */
export const CHECKED_KEY_IDS = `${CHECKED.replace("_", "\\_")}%`;

type NotRevoked = Missing<"key"> | LastKey;

export interface KeyRepositoryOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly clock: Clock;
  readonly random: Random;
}

export class KeyRepository {
  constructor(private readonly options: KeyRepositoryOptions) {}

  create(tenantId: string, options: KeyOptions = {}): Promise<Done<NewKey> | Missing<"tenant">> {
    return this.options.database.write(async (transaction) => {
      if ((await tenantRow(transaction, tenantId)) === null) return missing("tenant");
      return done(await this.insert(transaction, tenantId, options));
    });
  }

  /** Within the tenant's share. */
  createOwn(tenantId: string, options: KeyOptions): Promise<Done<NewKey> | Missing<"tenant"> | Full> {
    return this.options.database.write(async (transaction) => {
      if ((await tenantRow(transaction, tenantId)) === null) return missing("tenant");
      // From here on, no key of the tenant is added concurrently.
      await transaction.select({ id: tenants.id }).from(tenants).where(eq(tenants.id, tenantId)).for("update");
      const has = await transaction.$count(keys, eq(keys.tenantId, tenantId));
      if (has >= ownLimits.keysMax) return full(ownLimits.keysMax, "keys");
      return done(await this.insert(transaction, tenantId, options));
    });
  }

  /** A new key is unused, so no snapshot or cache of misses can contain it, and it needs no announcement. */
  private async insert(
    transaction: AnyDb,
    tenantId: string,
    { name = null, expiresAt = null, scopes = null }: KeyOptions,
  ): Promise<NewKey> {
    const { clock, random } = this.options;
    const id = `${CHECKED}${randomText(random, RANDOM_ID_CHARS)}`;
    const apiKey = newApiKey(random);
    const [createdAt, hash, prefix] = [new Date(clock.nowMs()), apiKeyHash(apiKey), apiKeyPrefix(apiKey)];
    const allowed = scopes === null ? null : SCOPES.filter((scope) => scopes.includes(scope));
    await transaction.insert(keys).values({ id, tenantId, hash, prefix, name, createdAt, expiresAt, scopes: allowed });
    return { key_id: id, api_key: apiKey };
  }

  /** Oldest first. */
  all(tenantId: string): Promise<AllOfTenant<KeyRecord>> {
    return listOfTenant(this.options.database, tenantId, {
      rows: (db) =>
        db.select().from(keys).where(eq(keys.tenantId, tenantId)).orderBy(asc(keys.createdAt), asc(keys.id)),
      item: ({ id, prefix, name, createdAt, lastUsedAt, expiresAt, scopes }) => ({
        key_id: id,
        prefix,
        name,
        created_at: isoTime(createdAt),
        last_used_at: lastUsedAt && isoTime(lastUsedAt),
        expires_at: expiresAt && isoTime(expiresAt),
        scopes: scopes ?? SCOPES,
      }),
    });
  }

  /** Notes uses, unless the same or a later one is known. */
  async noteUses(uses: readonly Use[]): Promise<void> {
    const { at, where } = newUses(uses, keys);
    await this.options.database.write((transaction) => transaction.update(keys).set({ lastUsedAt: at }).where(where));
  }

  revoke(
    tenantId: string,
    keyId: string,
    { isOwn }: { readonly isOwn: boolean } = { isOwn: false },
  ): Promise<Done | Missing<"tenant" | "key"> | LastKey> {
    return this.options.changes.ofTenant(tenantId, async (transaction): Promise<Done | Undone<NotRevoked>> => {
      if (!KEY_ID.test(keyId)) return new Undone(missing("key"));
      const deleted = await transaction
        .delete(keys)
        .where(and(eq(keys.tenantId, tenantId), eq(keys.id, keyId)))
        .returning({ scopes: keys.scopes });
      const [key] = deleted;
      if (key === undefined) return new Undone(missing("key"));
      const managed = (key.scopes ?? SCOPES).includes("manage");
      // The tenant's row is locked by now, so no other key leaves concurrently.
      if (isOwn && managed && !(await this.canManage(transaction, tenantId))) return new Undone({ kind: "last" });
      return done(null);
    });
  }

  private async canManage(transaction: AnyDb, tenantId: string): Promise<boolean> {
    const now = new Date(this.options.clock.nowMs());
    const [one] = await transaction
      .select({ id: keys.id })
      .from(keys)
      .where(
        and(
          eq(keys.tenantId, tenantId),
          or(isNull(keys.scopes), sql`'manage' = any(${keys.scopes})`),
          or(isNull(keys.expiresAt), gt(keys.expiresAt, now)),
        ),
      )
      .limit(1);
    return one !== undefined;
  }
}
