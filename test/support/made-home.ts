import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import pglitePackage from "../../node_modules/@electric-sql/pglite/package.json" with { type: "json" };
import chdbPackage from "../../node_modules/chdb/package.json" with { type: "json" };
import { eventStoreFoundation, eventStoreMigrations } from "../../src/events/schema/schema.ts";
import { openPglite } from "../../src/storage/postgres/pglite.ts";
import { schemaHash } from "./schema-hash.ts";

/** The folder for results that later runs need, too: not the run's own (`memory-folder.ts`). */
export const KEPT = process.env["TEST_KEPT"] ?? tmpdir();
/**
 * Kept after the run: for each state of the two schemas and their engines, the result of a first start. An archive,
 * because copying its hundreds of files one by one costs three times as much.
 */
const MADE = join(KEPT, `waybill-test-home-${await hashOfAll()}.tar`);
/** The members of the archive. */
const PARTS = ["postgres", "clickhouse", "apple-sandbox.pem", "google-private-key.pem"] as const;

/** Creates it if no test of these schemas has run yet: that takes some ten seconds of CPU. */
export async function prepareMadeHome(): Promise<void> {
  if (existsSync(MADE)) return;
  const draft = await mkdtemp(`${MADE}-`);
  const home = join(draft, "home");
  await run([process.execPath, join(import.meta.dir, "make-home.ts"), home]);
  const archive = join(draft, "home.tar");
  await run(["tar", "-cf", archive, "-C", home, ...PARTS]);
  await rename(archive, MADE);
  await rm(draft, { recursive: true, force: true });
}

/**
 * Puts into the data folder `home`, which exists, the stores that its first start would create: an empty PostgreSQL
 * cluster and an empty event store with their schemas, and the sandbox's keys. The cluster can be left out.
 */
export async function fillHome(home: string, { hasPostgres }: { readonly hasPostgres: boolean }): Promise<void> {
  await prepareMadeHome();
  await extract(home, hasPostgres ? [] : PARTS.filter((part) => part !== "postgres"));
}

/** Puts only the PostgreSQL cluster into `folder`, which does not exist yet. */
export async function copyMadePostgres(folder: string): Promise<void> {
  await prepareMadeHome();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await extract(folder, ["--strip-components=1", "postgres"]);
}

/** Puts an empty PostgreSQL cluster into `folder`, as if it had just been created. */
export async function copyEmptyPostgres(folder: string): Promise<void> {
  const { db, close } = await openMadePglite(folder);
  await db.execute(sql`drop schema public cascade`);
  await db.execute(sql`create schema public`);
  await close();
}

/** `openPglite` on a folder that does not exist yet. */
export async function openMadePglite(folder: string): ReturnType<typeof openPglite> {
  await copyMadePostgres(folder);
  return openPglite(folder);
}

/** A PostgreSQL with the current schema in a folder of its own, which `remove` deletes once the database is closed. */
export async function temporaryPglite() {
  const folder = await mkdtemp(join(tmpdir(), "waybill-pglite-"));
  const database = await openMadePglite(join(folder, "postgres"));
  return { database, remove: () => rm(folder, { recursive: true, force: true }) };
}

async function extract(folder: string, which: readonly string[] = []): Promise<void> {
  await run(["tar", "-xf", MADE, "--no-same-owner", "-C", folder, ...which]);
}

async function run(command: readonly string[]): Promise<void> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const said = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${said}`);
}

/** A hash of all inputs of the archive's contents. */
async function hashOfAll(): Promise<string> {
  const target = { database: "waybill", cluster: null };
  const steps = [eventStoreFoundation(target), eventStoreMigrations(target)];
  const sources = [
    "../../src/events/schema/migrate-event-store.ts",
    "../../src/events/schema/retention.ts",
    "../../src/events/schema/alter-tables.ts",
    "../../src/events/schema/power-cuts.ts",
    "../../src/channels/wallet/sandbox/apple-identity.ts",
    "make-home.ts",
  ];
  const texts = await Promise.all(sources.map((file) => Bun.file(join(import.meta.dir, file)).text()));
  const all = [await schemaHash(), pglitePackage.version, chdbPackage.version, steps, texts];
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(all)).digest("hex").slice(0, 16);
}
