import type { OpenRegistry } from "../../../src/app/open-registry.ts";
import type { GoogleClassOwners } from "../../../src/channels/wallet/google-classes.ts";
import type { OpenDatabase } from "../../../src/storage/postgres/database.ts";
import { migrate } from "../../../src/storage/postgres/migrate.ts";
import { temporaryPglite } from "../../support/made-home.ts";
import { openTestRegistry } from "../../tenants/open-test-registry.ts";

/** The owners of Google's classes, in a registry of their own. */
export class TestOwners {
  private constructor(
    private readonly registry: OpenRegistry,
    private readonly database: OpenDatabase,
    private readonly remove: () => Promise<void>,
  ) {}

  static async open(tenantIds: readonly string[]): Promise<TestOwners> {
    const { database, remove } = await temporaryPglite();
    await migrate(database.db);
    const registry = await openTestRegistry(database);
    for (const id of tenantIds) await registry.registry.createTenant({ id, name: id });
    return new TestOwners(registry, database, remove);
  }

  get all(): GoogleClassOwners {
    return this.registry.googleClasses;
  }

  async close(): Promise<void> {
    await this.registry.stop();
    await this.database.close();
    await this.remove();
  }
}
