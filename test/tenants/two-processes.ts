import type { OpenRegistry } from "../../src/app/open-registry.ts";
import type { OpenDatabase } from "../../src/storage/postgres/database.ts";
import { migrate } from "../../src/storage/postgres/migrate.ts";
import { openTestRegistry } from "./open-test-registry.ts";
import type { TestDatabase } from "./registry-conformance.ts";

/**
 * The registry as two processes on one database use it. Neither is started, so neither is notified of the other's
 * changes.
 */
export interface TwoProcesses {
  /** The first one's connection. */
  readonly here: OpenDatabase;
  /** The second one's. */
  readonly there: OpenDatabase;
  readonly first: OpenRegistry;
  readonly second: OpenRegistry;
  /** Ends both, and removes the database. */
  close(): Promise<void>;
}

export async function openTwoProcesses(create: () => Promise<TestDatabase>): Promise<TwoProcesses> {
  const database = await create();
  try {
    const here = await database.connect();
    const there = await database.connect();
    await migrate(here.db);
    const first = await openTestRegistry(here);
    const second = await openTestRegistry(there);
    return {
      here,
      there,
      first,
      second,
      async close() {
        await first.stop();
        await second.stop();
        await here.close();
        await there.close();
        await database.remove();
      },
    };
  } catch (error) {
    await database.remove();
    throw error;
  }
}
