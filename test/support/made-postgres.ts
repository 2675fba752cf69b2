import { cp, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import pglitePackage from "../../node_modules/@electric-sql/pglite/package.json" with { type: "json" };
import { migrate } from "../../src/storage/migrate.ts";
import { openPglite } from "../../src/storage/pglite.ts";
import { makePrivate } from "../../src/storage/private-folder.ts";
import { schemaHash } from "./schema-hash.ts";

/** Kept after the run: for each state of the registry's migrations, a cluster of this version of PGlite with that schema. */
const MADE = join(tmpdir(), `waybill-test-cluster-${pglitePackage.version}-${await schemaHash()}`);

/**
 * Puts a PostgreSQL cluster with the registry's schema, and nothing in it, into `folder`, which does not exist yet.
 * Creating one takes seconds of CPU; only the first caller pays for it.
 */
export async function copyMadePostgres(folder: string): Promise<void> {
  try {
    await cp(MADE, folder, { recursive: true });
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
    await make();
    await cp(MADE, folder, { recursive: true });
  }
}

/** Puts a PostgreSQL cluster with nothing in it into `folder`, as if it had just been created. */
export async function copyEmptyPostgres(folder: string): Promise<void> {
  const { db, close } = await openMadePglite(folder);
  await db.execute(sql`drop schema public cascade`);
  await db.execute(sql`create schema public`);
  await close();
}

async function make(): Promise<void> {
  const draft = await mkdtemp(`${MADE}-`);
  const { db, close } = await openPglite(join(draft, "postgres"));
  await migrate(db);
  // Each registry gets one of its own.
  await db.execute(sql`drop table registry_identity`);
  await close();
  // With the permissions that a server sets, whose umask is 077.
  makePrivate(draft);
  // Another test file may have been faster.
  await rename(join(draft, "postgres"), MADE).catch((error: unknown) => {
    if (!isErrno(error, "ENOTEMPTY", "EEXIST")) throw error;
  });
  await rm(draft, { recursive: true, force: true });
}

/** `openPglite` on a folder that does not exist yet. */
export async function openMadePglite(folder: string): ReturnType<typeof openPglite> {
  await copyMadePostgres(folder);
  return openPglite(folder);
}

function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
