import { and, asc, eq, gt, isNull } from "drizzle-orm";
import { type CredentialForm, type CredentialsRecord, whyUnused } from "../domain/channels/credentials.ts";
import { type Clock, sleep } from "../domain/clock.ts";
import type { ChannelName } from "../domain/jobs/job.ts";
import { type AllOfTenant, type Done, done, type Missing, missing } from "../domain/store-result.ts";
import type { Database } from "../storage/postgres/database.ts";
import { readOfTenant, tenantRow } from "../storage/postgres/of-tenant.ts";
import type { CredentialStore, CredentialsPut } from "../storage/registry.ts";
import { type RegistryChanges, Undone } from "../storage/registry-changes.ts";
import { tenants } from "../storage/tables.ts";
import { type Secret, type Vault, VaultError } from "../storage/vault.ts";
import { credentials } from "./tables.ts";

export interface CredentialRepositoryOptions {
  readonly database: Database;
  readonly changes: RegistryChanges;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly kinds: readonly CredentialForm[];
}

/** Opening more secrets at once would block the thread for milliseconds. */
const OPENED_AT_ONCE = 500;

/** Tenants' own credentials, for any provider. Records that are read back contain no secret. */
export class CredentialRepository implements CredentialStore {
  constructor(private readonly options: CredentialRepositoryOptions) {}

  /**
   * Stores credentials. Resolves to whether they are used from now on: the tenant must be allowed its own credentials on the
   * channel.
   */
  put({ place, text }: Secret, channel: ChannelName): Promise<CredentialsPut> {
    const { vault, changes, clock } = this.options;
    const { tenantId, kind } = place;
    const sealed = vault.seal(place, text);
    return changes.ofTenant(tenantId, async (transaction) => {
      const now = new Date(clock.nowMs());
      await transaction
        .insert(credentials)
        .values({ tenantId, kind, sealed, createdAt: now, changedAt: now })
        .onConflictDoUpdate({
          target: [credentials.tenantId, credentials.kind],
          set: { sealed, changedAt: now },
        });
      const tenant = await tenantRow(transaction, tenantId);
      return done({ used: tenant?.allowCustom.includes(channel) ?? false });
    });
  }

  async opened(kind: string, channel: ChannelName): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    for (let after = ""; ; await sleep(this.options.clock, 0)) {
      const rows = await this.options.database.read((db) =>
        db
          .select({ tenantId: credentials.tenantId, sealed: credentials.sealed, allowCustom: tenants.allowCustom })
          .from(credentials)
          .innerJoin(tenants, eq(tenants.id, credentials.tenantId))
          .where(and(eq(credentials.kind, kind), isNull(tenants.deletedAt), gt(credentials.tenantId, after)))
          .orderBy(asc(credentials.tenantId))
          .limit(OPENED_AT_ONCE),
      );
      for (const { tenantId, sealed, allowCustom } of rows) {
        const text = allowCustom.includes(channel) ? this.openText({ tenantId, kind, sealed }) : null;
        if (text !== null) found.set(tenantId, text);
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < OPENED_AT_ONCE) return found;
      after = last.tenantId;
    }
  }

  /** Opens the sealed text; null if the vault refuses it. */
  private openText({ tenantId, kind, sealed }: Pick<typeof credentials.$inferSelect, "tenantId" | "kind" | "sealed">) {
    try {
      return this.options.vault.open({ tenantId, kind, field: "credentials" }, sealed);
    } catch (error) {
      if (error instanceof VaultError) return null;
      throw error;
    }
  }

  /** Ordered by kind. Rejects with `VaultError` if they do not open. */
  all(tenantId: string): Promise<AllOfTenant<CredentialsRecord>> {
    return readOfTenant(this.options.database, tenantId, async (db) => {
      const tenant = await tenantRow(db, tenantId);
      const rows = await db
        .select()
        .from(credentials)
        .where(eq(credentials.tenantId, tenantId))
        .orderBy(asc(credentials.kind));
      return done(rows.flatMap((row) => this.toRecord(row, tenant?.allowCustom ?? []) ?? []));
    });
  }

  async one(tenantId: string, kind: string): Promise<Done<CredentialsRecord> | Missing<"tenant" | "credentials">> {
    const all = await this.all(tenantId);
    if (all.kind === "missing") return all;
    const found = all.value.find((record) => record.kind === kind);
    return found === undefined ? missing("credentials") : done(found);
  }

  delete(tenantId: string, kind: string): Promise<Done | Missing<"tenant" | "credentials">> {
    return this.options.changes.ofTenant(tenantId, async (transaction) => {
      const deleted = await transaction
        .delete(credentials)
        .where(and(eq(credentials.tenantId, tenantId), eq(credentials.kind, kind)))
        .returning({ kind: credentials.kind });
      return deleted.length === 0 ? new Undone(missing("credentials")) : done(null);
    });
  }

  /** Null: the channel does not exist in this release. */
  private toRecord(
    row: typeof credentials.$inferSelect,
    allowCustom: readonly ChannelName[],
  ): CredentialsRecord | null {
    const { tenantId, sealed, createdAt, changedAt } = row;
    const kind = this.options.kinds.find((one) => one.kind === row.kind);
    if (kind === undefined) return null;
    const used = allowCustom.includes(kind.channel);
    return {
      ...kind.show(this.options.vault.open({ tenantId, kind: kind.kind, field: "credentials" }, sealed)),
      kind: kind.kind,
      channel: kind.channel,
      used,
      reason: used ? null : whyUnused(kind.channel),
      created_at: createdAt?.toISOString() ?? null,
      changed_at: changedAt?.toISOString() ?? null,
    };
  }
}
