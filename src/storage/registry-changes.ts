import { and, eq, isNull, sql } from "drizzle-orm";
import { type Done, type Missing, missing } from "../domain/store-result.ts";
import { TENANT_ID } from "../domain/tenants/tenant.ts";
import type { AnyDb, Database } from "./postgres/database.ts";
import { registryState, tenants } from "./tables.ts";

/** Notified of changes after they were committed, or when it is unknown whether they were. */
export interface ChangeListener {
  onTenant(tenantId: string): void;
  /** Resolves when the change is in force in this process. Never rejects. */
  onPlans(): Promise<void>;
  /** Resolves when the change is in force in this process. Never rejects. */
  onOperators(): Promise<void>;
}

/** Returned by a change instead of its result to have no effect: its transaction is rolled back, and not announced. */
export class Undone<R> extends Error {
  override readonly name = "Undone";
  constructor(readonly result: R) {
    super("a change was undone");
  }
}

/**
 * Changes data that processes have in memory. Each change is one transaction that takes the registry's next version,
 * which other processes read at their next poll. Its announcement after the commit makes them read it at once.
 *
 * Lock order: the registry's state, then a tenant. Code that locks only a tenant (tokens) is compatible with it.
 */
export class RegistryChanges {
  constructor(
    private readonly database: Database,
    private readonly listener: ChangeListener,
  ) {}

  /** Makes a change to a tenant. If it returns `Undone`, it is rolled back, and its result returned. */
  async ofTenant<T, R = never>(
    tenantId: string,
    change: (transaction: AnyDb) => Promise<T | Undone<R>>,
  ): Promise<T | R | Missing<"tenant">> {
    // Texts that cannot be a tenant's id are never sent to PostgreSQL.
    if (!TENANT_ID.test(tenantId)) return missing("tenant");
    const announce = () => this.listener.onTenant(tenantId);
    return this.announced(announce, async (transaction): Promise<T | Undone<R | Missing<"tenant">>> => {
      const version = await nextVersion(transaction);
      const changed = await transaction
        .update(tenants)
        .set({ version })
        .where(and(eq(tenants.id, tenantId), isNull(tenants.deletedAt)))
        .returning({ id: tenants.id });
      return changed.length === 0 ? new Undone(missing("tenant")) : change(transaction);
    });
  }

  /** `create` returns the tenant that it created, with the version it was given. */
  async ofNewTenant<T extends Done<{ readonly id: string }>, R>(
    create: (transaction: AnyDb, version: number) => Promise<T | Undone<R>>,
  ): Promise<T | R> {
    const result = await this.written(async (transaction) => create(transaction, await nextVersion(transaction)));
    if (result instanceof Undone) return result.result;
    this.listener.onTenant(result.value.id);
    return result;
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

  /** Makes a change to operators. If it returns `Undone`, it is rolled back, and its result returned. */
  ofOperators<T, R = never>(change: (transaction: AnyDb) => Promise<T | Undone<R>>): Promise<T | R> {
    return this.announced(
      () => this.listener.onOperators(),
      async (transaction): Promise<T | Undone<R>> => {
        const version = await nextVersion(transaction);
        await transaction.update(registryState).set({ operatorsVersion: version });
        return change(transaction);
      },
    );
  }

  private async announced<T, R = never>(
    announce: () => void | Promise<void>,
    change: (transaction: AnyDb) => Promise<T | Undone<R>>,
  ): Promise<T | R> {
    let result: T | Undone<R>;
    try {
      result = await this.written(change);
    } catch (error) {
      // The change may have been committed.
      await announce();
      throw error;
    }
    if (result instanceof Undone) return result.result;
    await announce();
    return result;
  }

  private async written<T, R>(change: (transaction: AnyDb) => Promise<T | Undone<R>>): Promise<T | Undone<R>> {
    try {
      return await this.database.write(async (transaction) => {
        const result = await change(transaction);
        // Only an error makes the database roll back.
        if (result instanceof Undone) throw result;
        return result;
      });
    } catch (error) {
      // Only the line above throws one.
      if (error instanceof Undone) return error as Undone<R>;
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
