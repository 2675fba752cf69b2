import { rename } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite, type Results, type Transaction } from "@electric-sql/pglite";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/pglite";
import pglitePackage from "../../node_modules/@electric-sql/pglite/package.json" with { type: "json" };
import type { OpenDatabase } from "../../src/storage/postgres/database.ts";
import { migrate } from "../../src/storage/postgres/migrate.ts";
import { schemaHash } from "./schema-hash.ts";

/** The registry's empty database with the current schema, on a PGlite that keeps its files in memory. */
export interface RegistryDatabase extends OpenDatabase {
  /** While it is set, every statement fails as without a server. */
  isAway: boolean;
}

export async function openRegistryDatabase(): Promise<RegistryDatabase> {
  return spare.pop() ?? load();
}

async function load(): Promise<RegistryDatabase> {
  const client = new CutPglite({ loadDataDir: await madeFiles() });
  await client.waitReady;
  await client.exec("set client_min_messages = warning");
  const db = drizzle({ client });
  const database: RegistryDatabase = {
    db,
    get isAway() {
      return client.isAway;
    },
    set isAway(isAway) {
      client.isAway = isAway;
    },
    async close() {
      client.isAway = false;
      await db.execute(sql.raw(`truncate ${await readTables(client)} cascade`));
      spare.push(database);
    },
  };
  return database;
}

class CutPglite extends PGlite {
  isAway = false;

  override async query<T>(...given: Parameters<PGlite["query"]>): Promise<Results<T>> {
    this.answer();
    return super.query<T>(...given);
  }

  override async transaction<T>(run: (transaction: Transaction) => Promise<T>): Promise<T> {
    this.answer();
    return super.transaction(run);
  }

  private answer(): void {
    // Bun.SQL's error.
    if (this.isAway) throw Object.assign(new Error("no server"), { code: "ERR_POSTGRES_CONNECTION_REFUSED" });
  }
}

/** All tables except those with the schema's version and the database's identity. */
async function readTables(client: PGlite): Promise<string> {
  const { rows } = await client.query<{ readonly name: string }>(
    "select quote_ident(tablename) as name from pg_tables where schemaname = 'public' " +
      "and tablename not in ('registry_migrations', 'registry_identity')",
  );
  return rows.map(({ name }) => name).join(", ");
}

/** A migrated cluster's files, as one archive. Kept after the run: creating and migrating one takes seconds of CPU. */
async function madeFiles(): Promise<Blob> {
  const path = join(tmpdir(), `waybill-test-registry-${pglitePackage.version}-${await schemaHash()}.tar`);
  if (!(await Bun.file(path).exists())) {
    const client = await PGlite.create();
    await migrate(drizzle({ client }));
    await client.exec("checkpoint");
    const draft = `${path}-${process.pid}`;
    await Bun.write(draft, await client.dumpDataDir("none"));
    await client.close();
    await rename(draft, path);
  }
  return Bun.file(path);
}

/**
 * Opening one takes a third of a second, so closed ones are emptied and used again by this process. The first is opened
 * here because hooks have little time, and on a new machine it has to be created.
 */
const spare: RegistryDatabase[] = [await load()];
