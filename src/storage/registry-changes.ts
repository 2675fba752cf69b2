import { eq, sql } from "drizzle-orm";
import { ApiError } from "../domain/errors.ts";
import type { AnyDb, Database } from "./database.ts";
import { noSuchTenant } from "./no-such-tenant.ts";
import { registryState, tenants } from "./tables.ts";

/** Is told of changes after their commit, or where it is unknown whether they were committed. */
export interface ChangeListener {
  onTenant(tenantId: string): void;
  /** Resolves when the change is in force here. Never rejects. */
  onPlans(): Promise<void>;
}

/**
 * Changes that snapshots of tenants show. Each is one transaction that takes the next version of the registry, which
 * makes the other processes see it at their next poll, and is announced after its commit, which makes them see it now.
 *
 * Lock order: the registry's state, then a tenant. Whoever locks a tenant alone (tokens) is compatible with it.
 */
export class RegistryChanges {
  constructor(
    private readonly database: Database,
    private readonly listener: ChangeListener,
  ) {}

  /** Rejects with `ApiError` 404 when there is no such tenant. */
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

  /** `create` answers the tenant that it made, with the version it was given. */
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
      // Anything else than a refusal may have been committed.
      if (!(error instanceof ApiError)) await announce();
      throw error;
    }
  }
}

/** Holds the state's row until the transaction ends: versions are committed in their order. */
async function nextVersion(transaction: AnyDb): Promise<number> {
  const [state] = await transaction
    .update(registryState)
    .set({ version: sql`${registryState.version} + 1` })
    .returning({ version: registryState.version });
  if (state === undefined) throw new Error("the registry's state row is missing");
  return state.version;
}
