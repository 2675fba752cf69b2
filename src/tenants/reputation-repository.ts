import { and, eq, isNull, ne, sql } from "drizzle-orm";
import { type Done, done, type Missing, missing } from "../domain/store-result.ts";
import { type Reputation, UNGOVERNED } from "../domain/tenants/reputation.ts";
import type { Database } from "../storage/postgres/database.ts";
import { tenantRow } from "../storage/postgres/of-tenant.ts";
import type { RegistryTools } from "../storage/registry.ts";
import { type RegistryChanges, Undone } from "../storage/registry-changes.ts";
import { tenants } from "../storage/tables.ts";
import type { TenantRegistry } from "./registry.ts";

const NONE = sql`'{}'::jsonb`;

/** The governor's state for each tenant, a column of its row. */
class ReputationRepository {
  constructor(
    private readonly database: Database,
    private readonly changes: RegistryChanges,
  ) {}

  async one(tenantId: string): Promise<Done<Reputation> | Missing<"tenant">> {
    const row = await this.database.read((db) => tenantRow(db, tenantId));
    return row === null ? missing("tenant") : done(readReputation(row.reputation));
  }

  /** Returns the tenants with a state other than `UNGOVERNED`, by id. */
  async all(): Promise<ReadonlyMap<string, Reputation>> {
    const rows = await this.database.read((db) =>
      db
        .select({ id: tenants.id, reputation: tenants.reputation })
        .from(tenants)
        .where(and(ne(tenants.reputation, NONE), isNull(tenants.deletedAt))),
    );
    return new Map(rows.map(({ id, reputation }) => [id, readReputation(reputation)]));
  }

  /** Changes the state unless `change` returns the same object. Resolves to the state, and whether it was changed. */
  change(
    tenantId: string,
    change: (state: Reputation) => Reputation,
  ): Promise<Done<{ readonly state: Reputation; readonly isChanged: boolean }> | Missing<"tenant">> {
    return this.changes.ofTenant(tenantId, async (transaction) => {
      const row = await tenantRow(transaction, tenantId);
      if (row === null) return missing("tenant");
      const before = readReputation(row.reputation);
      const state = change(before);
      if (state === before) return new Undone(done({ state, isChanged: false }));
      const reputation = state === UNGOVERNED ? {} : state;
      await transaction.update(tenants).set({ reputation }).where(eq(tenants.id, tenantId));
      return done({ state, isChanged: true });
    });
  }
}

/** Creates the part of the registry that has the governor's states. */
export function createReputations({
  database,
  changes,
}: Pick<RegistryTools, "database" | "changes">): Pick<
  TenantRegistry,
  "reputation" | "reputations" | "changeReputation"
> {
  const repository = new ReputationRepository(database, changes);
  return {
    reputation: (tenantId) => repository.one(tenantId),
    reputations: () => repository.all(),
    changeReputation: (tenantId, change) => repository.change(tenantId, change),
  };
}

/** Completes a stored state, of which `{}` is `UNGOVERNED`. */
export function readReputation(stored: Partial<Reputation>): Reputation {
  return stored.level === undefined ? UNGOVERNED : { ...UNGOVERNED, ...stored };
}
