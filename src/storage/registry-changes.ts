import { eq, sql } from "drizzle-orm";
import { ApiError } from "../domain/errors.ts";
import type { AnyDb, Database } from "./database.ts";
import { noSuchTenant } from "./no-such-tenant.ts";
import { registryState, tenants } from "./tables.ts";

/** Hears of changes after they were committed, or when it is unknown whether they were. */
export interface ChangeListener {
  onTenant(tenantId: string): void;
  /** Resolves when the change is in force in this process. Never rejects. */
  onPlans(): Promise<void>;
}

/**
 * Makes changes that tenant snapshots show. Each is one transaction that takes the registry's next version, which other
 * processes notice at their next poll. It is announced after its commit, which they notice at once.
 *
 * Lock order: the registry's state, then a tenant. Code that locks only a tenant (tokens) is compatible with it.
 */
export class RegistryChanges {
  constructor(
    private readonly database: Database,
    private readonly listener: ChangeListener,
  ) {}

  /** Rejects with `ApiError` 404 if there is no such tenant. */
  ofTenant<T>(tenantId: string, change: (transaction: AnyDb) => Promise<T>): Promise<T> {
    const announce = () => this.listener.onTenant(tenantId);
    return this.announced(announce, async (transaction) => {
      const version = await nextVersion(transaction);
      const changed = await transaction
        .update(tenants)
        .set({ version })
        .where(eq(tenants.id, tenantId))
        .returning({ id: tenants.id });
      if (changed.length === 0) throw noSuchTenant(tenantId);
      return change(transaction);
    });
  }

  /** `create` returns the tenant that it created, with the version it was given. */
  ofNewTenant<T extends { readonly id: string }>(
    create: (transaction: AnyDb, version: number) => Promise<T>,
  ): Promise<T> {
    return this.database
      .write(async (transaction) => create(transaction, await nextVersion(transaction)))
      .then((created) => {
        this.listener.onTenant(created.id);
        return created;
      });
  }

  ofPlans<T>(change: (transaction: AnyDb) => Promise<T>): Promise<T> {
    return this.announced(
      () => this.listener.onPlans(),
      async (transaction) => {
        const version = await nextVersion(transaction);
        await transaction.update(registryState).set({ plansVersion: version });
        return change(transaction);
      },
    );
  }

  private async announced<T>(
    announce: () => void | Promise<void>,
    change: (transaction: AnyDb) => Promise<T>,
  ): Promise<T> {
    try {
      const result = await this.database.write(change);
      await announce();
      return result;
    } catch (error) {
      // Except for a refusal, the change may have been committed.
      if (!(error instanceof ApiError)) await announce();
      throw error;
    }
  }
}

/** Locks the state's row until the transaction ends, so versions are committed in order. */
async function nextVersion(transaction: AnyDb): Promise<number> {
  const [state] = await transaction
    .update(registryState)
    .set({ version: sql`${registryState.version} + 1` })
    .returning({ version: registryState.version });
  if (state === undefined) throw new Error("the registry's state row is missing");
  return state.version;
}
