import { and, asc, eq, gt, isNull, notLike } from "drizzle-orm";
import { ALL_SCOPES, type ApiKey, type Plan, type Tenant } from "../domain/tenants/tenant.ts";
import { among } from "../storage/analysts/statement-texts.ts";
import type { Database } from "../storage/postgres/database.ts";
import { plans, registryState, tenants } from "../storage/tables.ts";
import { CHECKED_KEY_IDS } from "./key-repository.ts";
import { keys } from "./tables.ts";
import { TenantReading, type TenantReadingOptions } from "./tenant-reading.ts";

/** A key's owner. */
export interface KeyOwner {
  readonly key: ApiKey;
  readonly tenantId: string;
  /** In unix milliseconds; infinite: it does not expire. */
  readonly expiresAtMs: number;
}

/** The changes since a version. */
export interface TenantChanges {
  /** These are all changes up to this version. */
  readonly version: number;
  /** Whether there are more changes after it. */
  readonly hasMore: boolean;
  /** The changed tenants; null: the registry went back, for example after a restore, and any tenant may have changed. */
  readonly tenantIds: readonly string[] | null;
  readonly havePlansChanged: boolean;
  readonly haveOperatorsChanged: boolean;
}

/** Most changed tenants reported at once. */
const CHANGES_MAX = 1_000;

/** Reads the contents of snapshots. Rejects with `UnavailableError` if the registry cannot be reached. */
export class TenantSource {
  private readonly database: Database;

  constructor(private readonly options: TenantReadingOptions) {
    this.database = options.database;
  }

  /** Returns the owners of keys by the hash of the key. */
  async ownersOfKeys(hashes: readonly string[]): Promise<ReadonlyMap<string, KeyOwner>> {
    const rows = await this.database.read((db) =>
      db
        .select({
          hash: keys.hash,
          keyId: keys.id,
          tenantId: keys.tenantId,
          expiresAt: keys.expiresAt,
          scopes: keys.scopes,
        })
        .from(keys)
        .where(among(keys.hash, hashes)),
    );
    return new Map(
      rows.map(({ hash, keyId, tenantId, expiresAt, scopes }) => [
        hash,
        {
          key: { keyId, scopes: scopes === null ? ALL_SCOPES : new Set(scopes) },
          tenantId,
          expiresAtMs: expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
        },
      ]),
    );
  }

  /** The hashes of keys made before keys had a checksum, up to the limit. */
  async hashesOfFormerKeys(limit: number): Promise<readonly string[]> {
    const rows = await this.database.read((db) =>
      db.select({ hash: keys.hash }).from(keys).where(notLike(keys.id, CHECKED_KEY_IDS)).limit(limit),
    );
    return rows.map(({ hash }) => hash);
  }

  /** Returns the existing tenants. A tenant that cannot be read, for example because its secrets do not open, fails alone. */
  async tenants(tenantIds: readonly string[]): Promise<ReadonlyMap<string, PromiseSettledResult<Tenant>>> {
    const rows = await this.database.read((db) =>
      db
        .select()
        .from(tenants)
        .innerJoin(plans, eq(plans.name, tenants.plan))
        .where(and(among(tenants.id, tenantIds), isNull(tenants.deletedAt))),
    );
    const ids = rows.map((row) => row.tenants.id);
    const reading = new TenantReading(this.options);
    await reading.read(ids);
    const plansByName = new Map(rows.map((row) => [row.plans.name, row.plans]));
    return new Map(
      rows.map((row) => {
        // One object per plan, however many tenants share it.
        const plan = plansByName.get(row.plans.name) ?? row.plans;
        return [row.tenants.id, reading.tenant({ ...row.tenants, plan })];
      }),
    );
  }

  /** Plans by name. */
  async plans(): Promise<ReadonlyMap<string, Plan>> {
    const rows = await this.database.read((db) => db.select().from(plans));
    return new Map(rows.map((plan) => [plan.name, plan]));
  }

  /** One statement, so it sees one state: no version without the changes before it. */
  async changesSince(version: number): Promise<TenantChanges> {
    const rows = await this.database.read((db) =>
      db
        .select({
          version: registryState.version,
          plansVersion: registryState.plansVersion,
          operatorsVersion: registryState.operatorsVersion,
          tenantId: tenants.id,
          tenantVersion: tenants.version,
        })
        .from(registryState)
        .leftJoin(tenants, gt(tenants.version, version))
        .orderBy(asc(tenants.version))
        .limit(CHANGES_MAX + 1),
    );
    const [first] = rows;
    if (first === undefined) throw new Error("the registry's state row is missing");
    const hasMore = rows.length > CHANGES_MAX;
    const named = rows.slice(0, CHANGES_MAX);
    const tenantIds = named.flatMap(({ tenantId }) => (tenantId === null ? [] : [tenantId]));
    return {
      // Versions are assigned one by one, so every change up to the last named tenant's version is reported.
      version: hasMore ? (named.at(-1)?.tenantVersion ?? first.version) : first.version,
      hasMore,
      tenantIds: first.version < version ? null : tenantIds,
      havePlansChanged: first.plansVersion > version || first.version < version,
      haveOperatorsChanged: first.operatorsVersion > version || first.version < version,
    };
  }
}
