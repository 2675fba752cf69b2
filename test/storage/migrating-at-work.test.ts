import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { connectPostgres } from "../../src/storage/postgres/connect-postgres.ts";
import { migrate } from "../../src/storage/postgres/migrate.ts";
import { eventually } from "../support/eventually.ts";
import { createPostgres, type PostgresServer, postgresMissing } from "../support/postgres.ts";
import { applyMigration, beginMigrations, MIGRATIONS } from "../support/registry-migrations.ts";

/** The first of a few migrations that change one table after the other. */
const FIRST_MISSING = 17;

describe.skipIf(postgresMissing() !== null)("a migration beside a process at work", () => {
  let server: PostgresServer;

  beforeAll(async () => {
    server = await createPostgres();
  }, 300_000);

  afterAll(() => server?.remove(), 60_000);

  test("gives way to a transaction that needs the tables in another order, and comes to its end", async () => {
    const work = new SQL(server.url, { max: 1 });
    const look = new SQL(server.url, { max: 1 });
    const { db, close } = await connectPostgres(server.url);
    try {
      await beginMigrations(db);
      for (let at = 0; at < FIRST_MISSING; at += 1) await applyMigration(db, at);
      const waits = async () =>
        (await look`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ilike '%alter table%'`)
          .length > 0;
      let migrating: Promise<void> = Promise.resolve();
      await work.begin(async (transaction) => {
        await transaction`lock table passes in row exclusive mode`;
        migrating = migrate(db);
        await eventually("the migration waits for the passes", waits);
        // As the check of a foreign key does.
        await transaction`lock table tenants in row share mode`;
        await transaction`lock table content_uses in row exclusive mode`;
      });
      await migrating;
      const applied = await look`select hash from registry_migrations`;
      expect(applied).toHaveLength(MIGRATIONS.length);
    } finally {
      await Promise.all([work.close(), look.close(), close()]);
    }
  }, 300_000);
});
