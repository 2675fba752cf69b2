import { type AnyColumn, and, asc, eq, gt, isNull, or, type SQL, sql } from "drizzle-orm";
import type { Clock } from "../domain/clock.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import type { Page } from "../domain/page.ts";
import type { Random } from "../domain/random.ts";
import {
  type Done,
  done,
  type Invalid,
  type InvalidCursor,
  invalid,
  type Missing,
  missing,
} from "../domain/store-result.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import { checkText } from "../storage/postgres/check-text.ts";
import type { AnyDb, Database } from "../storage/postgres/database.ts";
import { isoTime } from "../storage/postgres/iso-time.ts";
import { tenantRow } from "../storage/postgres/of-tenant.ts";
import { buildPage, rowsToRead } from "../storage/postgres/page-of.ts";
import { type RegistryChanges, Undone } from "../storage/registry-changes.ts";
import { tenants } from "../storage/tables.ts";
import { missingPlan } from "./plan-repository.ts";
import type {
  CreatedTenant,
  NewTenant,
  NoSuchPlan,
  Steer,
  TenantChange,
  TenantFilter,
  TenantRecord,
  TenantTaken,
  WhichTenants,
} from "./registry.ts";
import { slugFromName } from "./slug-from-name.ts";
import { steered } from "./steering-columns.ts";
import { tenantShard } from "./tenant-shard.ts";
import { recordOpeningBalance, setBalance } from "./token-repository.ts";

type TenantRow = typeof tenants.$inferSelect;

const NAME_CHARS_MAX = 200;
const SLUG_TRIES = 8;

export interface TenantRepositoryOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly shards: number;
  /** The default channels of a new tenant. */
  readonly channels: readonly ChannelName[];
  readonly clock: Clock;
  readonly random: Random;
}

export class TenantRepository {
  constructor(private readonly options: TenantRepositoryOptions) {}

  async create(tenant: NewTenant): Promise<CreatedTenant> {
    const { id, name, tokens = 0 } = tenant;
    if (id !== undefined && !TENANT_ID.test(id)) {
      return invalid('The field "id" must be 1-63 lower-case letters, digits or hyphens, and not begin with a hyphen.');
    }
    const fault = checkName(name);
    if (fault !== null) return fault;
    if (!Number.isSafeInteger(tokens) || tokens < 0) {
      return invalid('The field "tokens" must be an integer of 0 or more.');
    }
    return this.options.changes.ofNewTenant(async (transaction, version) => {
      const noPlan = await missingPlan(transaction, tenant.plan ?? "free");
      if (noPlan !== null) return new Undone<NoSuchPlan | TenantTaken>(noPlan);
      const created = await this.insert(transaction, tenant, version);
      if (created === null) return new Undone<NoSuchPlan | TenantTaken>(await takenBy(transaction, id));
      if (tokens > 0) await recordOpeningBalance(transaction, created);
      return done(toRecord(created));
    });
  }

  one(tenantId: string, which: WhichTenants = "present"): Promise<Done<TenantRecord> | Missing<"tenant">> {
    return this.options.database.read(async (db) => {
      if (which === "present" || !TENANT_ID.test(tenantId)) return found(await tenantRow(db, tenantId));
      const [row = null] = await db.select().from(tenants).where(eq(tenants.id, tenantId));
      return found(row);
    });
  }

  /** Ordered by id. */
  async page(
    cursor: string | null,
    limit: number,
    which: WhichTenants = "present",
    { find = null, plan = null }: TenantFilter = {},
  ): Promise<Done<Page<TenantRecord>> | InvalidCursor> {
    if (cursor !== null && !TENANT_ID.test(cursor)) return { kind: "invalid_cursor" };
    const rows = await this.options.database.read((db) =>
      db
        .select()
        .from(tenants)
        .where(
          and(
            cursor === null ? undefined : gt(tenants.id, cursor),
            which === "present" ? isNull(tenants.deletedAt) : undefined,
            plan === null ? undefined : eq(tenants.plan, plan),
            find === null ? undefined : or(holds(tenants.id, find), holds(tenants.name, find)),
          ),
        )
        .orderBy(asc(tenants.id))
        .limit(rowsToRead(limit)),
    );
    return done(buildPage(rows, limit, { item: toRecord, cursor: (row) => row.id }));
  }

  async change(
    tenantId: string,
    change: TenantChange,
  ): Promise<Done<TenantRecord> | Missing<"tenant"> | Invalid | NoSuchPlan> {
    const { name, plan, channels, permissions, allow_custom: allowCustom, tracking, tokens } = change;
    const fault = name === undefined ? null : checkName(name);
    if (fault !== null) return fault;
    const values = {
      ...(name !== undefined && { name }),
      ...(plan !== undefined && { plan }),
      ...(channels !== undefined && { channels: unique(channels) }),
      ...(permissions !== undefined && { permissions: unique(permissions) }),
      ...(allowCustom !== undefined && { allowCustom: unique(allowCustom) }),
      ...(tracking !== undefined && { tracking }),
    };
    const hasValues = Object.keys(values).length > 0;
    if (!hasValues && tokens === undefined) return this.one(tenantId);
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      const noPlan = plan === undefined ? null : await missingPlan(transaction, plan);
      if (noPlan !== null) return new Undone(noPlan);
      if (hasValues) await transaction.update(tenants).set(values).where(eq(tenants.id, tenantId));
      if (tokens !== undefined) {
        await setBalance(transaction, { tenantId, tokens, createdAt: new Date(this.options.clock.nowMs()) });
      }
      return found(await tenantRow(transaction, tenantId));
    });
  }

  /** Leaves channels already in the wanted state unchanged; their pause does not count as ended anew. */
  steer(
    tenantId: string,
    steer: Steer,
    channels: readonly ChannelName[],
  ): Promise<Done<TenantRecord> | Missing<"tenant">> {
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      const row = await tenantRow(transaction, tenantId);
      if (row === null) return missing("tenant");
      const values = steered(row, steer, { channels, nowMs: this.options.clock.nowMs() });
      await transaction.update(tenants).set(values).where(eq(tenants.id, tenantId));
      return done(toRecord({ ...row, ...values }));
    });
  }

  putWalletWebhook(tenantId: string, url: string | null): Promise<Done | Missing<"tenant">> {
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      await transaction.update(tenants).set({ walletWebhookUrl: url }).where(eq(tenants.id, tenantId));
      return done(null);
    });
  }

  /** Null: the id is taken, or all ids tried for the name are. */
  private async insert(transaction: AnyDb, tenant: NewTenant, version: number): Promise<TenantRow | null> {
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
          tracking: tenant.tracking ?? {},
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
    return null;
  }
}

/** Returns the conflict over the requested id, or over all ids tried for the name. */
async function takenBy(transaction: AnyDb, id: string | undefined): Promise<TenantTaken> {
  if (id === undefined) return { kind: "taken", by: "name" };
  return { kind: "taken", by: (await tenantRow(transaction, id)) === null ? "deleted" : "id" };
}

function checkName(name: string): Invalid | null {
  return checkText(name, { field: "name", charsMax: NAME_CHARS_MAX });
}

function found(row: TenantRow | null): Done<TenantRecord> | Missing<"tenant"> {
  return row === null ? missing("tenant") : done(toRecord(row));
}

function unique<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

function toRecord(row: TenantRow): TenantRecord {
  return {
    id: row.id,
    name: row.name,
    plan: row.plan,
    channels: row.channels,
    permissions: row.permissions,
    allow_custom: row.allowCustom,
    tracking: row.tracking,
    paused: row.paused,
    held: row.held,
    tokens: row.tokens,
    shard: row.shard,
    created_at: isoTime(row.createdAt),
  };
}

/** Matches texts that contain another one, ignoring case. Unlike with `like`, no character is special. */
function holds(column: AnyColumn, part: string): SQL {
  return sql`position(lower(${part}) in lower(${column})) > 0`;
}
