import { asc, eq, gt } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import { ApiError } from "../domain/errors.ts";
import type { ChannelName } from "../domain/job.ts";
import type { Page } from "../domain/page.ts";
import type { Random } from "../domain/random.ts";
import { TENANT_ID } from "../domain/tenant.ts";
import { checkText } from "../storage/check-text.ts";
import type { AnyDb, Database } from "../storage/database.ts";
import { isoTime } from "../storage/iso-time.ts";
import { pageOf, rowsToRead } from "../storage/page-of.ts";
import type { RegistryChanges } from "../storage/registry-changes.ts";
import { requireTenant, requireTenantId } from "../storage/require-tenant.ts";
import { tenants } from "../storage/tables.ts";
import { requirePlan } from "./plan-repository.ts";
import type { NewTenant, TenantChange, TenantRecord } from "./registry.ts";
import { slugFromName } from "./slug-from-name.ts";
import { tenantShard } from "./tenant-shard.ts";
import { recordOpeningBalance } from "./token-repository.ts";

type TenantRow = typeof tenants.$inferSelect;

const NAME_CHARS_MAX = 200;
const SLUG_TRIES = 8;

export interface TenantRepositoryOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly shards: number;
  /** Those of a new tenant that is given none. */
  readonly channels: readonly ChannelName[];
  readonly clock: Clock;
  readonly random: Random;
}

export class TenantRepository {
  constructor(private readonly options: TenantRepositoryOptions) {}

  async create(tenant: NewTenant): Promise<TenantRecord> {
    const { id, name, tokens = 0 } = tenant;
    if (id !== undefined && !TENANT_ID.test(id)) {
      throw new ApiError(
        400,
        'The field "id" must be 1-63 lower-case letters, digits or hyphens, and not begin with a hyphen.',
      );
    }
    checkName(name);
    if (!Number.isSafeInteger(tokens) || tokens < 0) {
      throw new ApiError(400, 'The field "tokens" must be an integer of 0 or more.');
    }
    const row = await this.options.changes.ofNewTenant(async (transaction, version) => {
      await requirePlan(transaction, tenant.plan ?? "free");
      const created = await this.insert(transaction, tenant, version);
      if (tokens > 0) await recordOpeningBalance(transaction, created);
      return created;
    });
    return recordOf(row);
  }

  async one(tenantId: string): Promise<TenantRecord> {
    return recordOf(await this.options.database.read((db) => requireTenant(db, tenantId)));
  }

  /** Ordered by id. */
  async page(cursor: string | null, limit: number): Promise<Page<TenantRecord>> {
    if (cursor !== null && !TENANT_ID.test(cursor))
      throw new ApiError(400, 'The value of "cursor" is not one that was given out.');
    const rows = await this.options.database.read((db) =>
      db
        .select()
        .from(tenants)
        .where(cursor === null ? undefined : gt(tenants.id, cursor))
        .orderBy(asc(tenants.id))
        .limit(rowsToRead(limit)),
    );
    return pageOf(rows, limit, { item: recordOf, cursor: (row) => row.id });
  }

  async change(tenantId: string, change: TenantChange): Promise<TenantRecord> {
    requireTenantId(tenantId);
    const { name, plan, channels, permissions, allow_custom: allowCustom } = change;
    if (name !== undefined) checkName(name);
    const values = {
      ...(name !== undefined && { name }),
      ...(plan !== undefined && { plan }),
      ...(channels !== undefined && { channels: unique(channels) }),
      ...(permissions !== undefined && { permissions: unique(permissions) }),
      ...(allowCustom !== undefined && { allowCustom: unique(allowCustom) }),
    };
    if (Object.keys(values).length === 0) return this.one(tenantId);
    const row = await this.options.changes.ofTenant(tenantId, async (transaction) => {
      if (plan !== undefined) await requirePlan(transaction, plan);
      await transaction.update(tenants).set(values).where(eq(tenants.id, tenantId));
      return requireTenant(transaction, tenantId);
    });
    return recordOf(row);
  }

  async putWalletWebhook(tenantId: string, url: string | null): Promise<void> {
    requireTenantId(tenantId);
    await this.options.changes.ofTenant(tenantId, async (transaction) => {
      await transaction.update(tenants).set({ walletWebhookUrl: url }).where(eq(tenants.id, tenantId));
    });
  }

  private async insert(transaction: AnyDb, tenant: NewTenant, version: number): Promise<TenantRow> {
    const { shards, channels, clock, random } = this.options;
    for (let tries = 0; tries < SLUG_TRIES; tries += 1) {
      const id = tenant.id ?? slugFromName(tenant.name, tries === 0 ? null : random);
      const [row] = await transaction
        .insert(tenants)
        .values({
          id,
          name: tenant.name,
          plan: tenant.plan ?? "free",
          channels: unique(tenant.channels ?? channels),
          permissions: unique(tenant.permissions ?? []),
          allowCustom: unique(tenant.allow_custom ?? []),
          tokens: tenant.tokens ?? 0,
          shard: tenantShard(id, shards),
          version,
          createdAt: new Date(clock.nowMs()),
        })
        .onConflictDoNothing()
        .returning();
      if (row !== undefined) return row;
      if (tenant.id !== undefined) break;
    }
    throw new ApiError(409, `There is a tenant of this ${tenant.id === undefined ? "name" : "id"} already.`);
  }
}

function checkName(name: string): void {
  checkText(name, { field: "name", charsMax: NAME_CHARS_MAX });
}

function unique<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

function recordOf(row: TenantRow): TenantRecord {
  return {
    id: row.id,
    name: row.name,
    plan: row.plan,
    channels: row.channels,
    permissions: row.permissions,
    allow_custom: row.allowCustom,
    tokens: row.tokens,
    shard: row.shard,
    created_at: isoTime(row.createdAt),
  };
}
