import { beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import type { AnyDb } from "../../src/storage/postgres/database.ts";
import { migrate, requireSchema } from "../../src/storage/postgres/migrate.ts";
import { IS_PROVING } from "../support/proof.ts";
import { openRegistryDatabase } from "../support/registry-database.ts";
import { applyMigration, beginMigrations, MIGRATIONS } from "../support/registry-migrations.ts";

/**
 * Beginnings of the hashes by which a database recognises applied migrations: one that is changed after its release
 * makes every database refuse. A new one is added at the end.
 */
// biome-ignore format: as the list grows, a line stays a line
const RELEASED = [
  "be398e1c", "fb1a8c85", "73268d6e", "47f356c0", "3249a1a2", "63abce08", "d77010c4", "3480dac1", "ac17aeaf",
  "2f18b5aa", "67b979d3", "d0273bf4", "3d84c074", "c7a27d7a", "4c8265a7", "1bb89bb7", "f455083d", "fdee72b0",
  "f81110ad", "8687af4a", "3a309f00", "339c22cc", "042fb4c6", "62c075b3", "74bb5ce4", "c627ac57", "f1592e11",
];

/**
 * The version from which all later ones run at once; `npm run prove`: from each. The fourth made the first folders
 * outside of development.
 */
const FORMER = new Set([0, 3, MIGRATIONS.length - 2]);

type Row = Readonly<Record<string, unknown>>;
/** Rows by table, in the order of its columns. */
type Tables = ReadonlyMap<string, readonly Row[]>;

let db: AnyDb;

beforeAll(async () => {
  ({ db } = await openRegistryDatabase());
  await db.execute(sql`drop schema public cascade`);
  await db.execute(sql`create schema public`);
  await beginMigrations(db);
  // Rows may precede the rows that they refer to.
  await db.execute(sql`set session_replication_role = replica`);
});

async function rows(on: AnyDb, query: string): Promise<readonly Row[]> {
  const found = await on.select({ row: sql<Row>`to_jsonb(q)` }).from(sql`(${sql.raw(query)}) as q`);
  return found.map(({ row }) => row);
}

/** Undoes the changes of `work`. */
async function trying(work: (transaction: AnyDb) => Promise<void>): Promise<void> {
  const done = new Error("done");
  const undone = db.transaction(async (transaction) => {
    await work(transaction);
    throw done;
  });
  await undone.catch((error: unknown) => {
    if (error !== done) throw error;
  });
}

/** The writable columns, by table. */
async function columns(): Promise<ReadonlyMap<string, readonly Row[]>> {
  const all = await rows(
    db,
    `select c.relname as table_name, a.attname as column_name, a.atttypid::regtype::text as type, a.attnotnull as is_needed
from pg_attribute a join pg_class c on c.oid = a.attrelid
where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0 and a.attgenerated = ''
  and c.relname <> 'registry_migrations' order by c.relname, a.attnum`,
  );
  return Map.groupBy(all, (row) => String(row["table_name"]));
}

/**
 * A row in every table, with every text `row-<n>`, so that all references fit. Every second row leaves out nullable
 * columns.
 */
async function fill(n: number): Promise<void> {
  const inserts: string[] = [];
  for (const [table, all] of await columns()) {
    if (table === "registry_state" && n > 0) continue;
    const written = all.filter(({ is_needed }) => n % 2 === 0 || is_needed);
    const values = written.map((column) => `'${buildValue(column, n)}'`).join(", ");
    const names = written.map(({ column_name }) => `"${String(column_name)}"`).join(", ");
    inserts.push(`insert into ${table} (${names}) values (${values});`);
  }
  await db.execute(sql.raw(`do $$ begin ${inserts.join(" ")} end $$`));
}

function buildValue({ column_name, type }: Row, n: number): string {
  if (column_name === "role") return "read";
  switch (type) {
    case "text":
      return `row-${n}`;
    case "text[]":
      return `{row-${n}}`;
    case "jsonb":
      return `{"n": ${n}}`;
    case "bytea":
      return `\\x00ff${String(n).padStart(2, "0")}`;
    case "boolean":
      return "true";
    case "timestamp with time zone":
      return "2026-11-21T13:22:23.456Z";
    default:
      return String(n + 1);
  }
}

async function everything(on: AnyDb): Promise<Tables> {
  const named = await rows(
    on,
    "select tablename from pg_tables where schemaname = 'public' and tablename <> 'registry_migrations'",
  );
  const names = named.map(({ tablename }) => String(tablename));
  const selects = names.map((name) => `select '${name}' as name, to_jsonb(t) as row from ${name} t`);
  const found = Map.groupBy(await rows(on, selects.join(" union all ")), ({ name }) => String(name));
  // A row's JSON is an object.
  return new Map(names.map((name) => [name, (found.get(name) ?? []).map(({ row }) => row as Row)]));
}

/** Each row is still there, with all its values. */
function expectKept(before: Tables, after: Tables): void {
  for (const [table, had] of before) {
    const columnsThen = Object.keys(had[0] ?? {});
    const texts = (all: readonly Row[]) =>
      all.map((row) => JSON.stringify(columnsThen.map((name) => row[name]))).toSorted();
    expect([table, texts(after.get(table) ?? [])]).toEqual([table, texts(had)]);
  }
}

test("released migrations never change", () => {
  expect(MIGRATIONS.map(({ hash }) => hash.slice(0, 8))).toEqual(RELEASED);
});

test("from each schema to the next, and straight to the newest, all rows are kept", async () => {
  let filled: Tables = new Map();
  for (const at of MIGRATIONS.keys()) {
    await applyMigration(db, at);
    expectKept(filled, await everything(db));
    if (at === 0) await db.execute(sql`insert into plans (name, requests_per_minute) values ('free', 100)`);
    await fill(at);
    filled = await everything(db);
    if (!IS_PROVING && !FORMER.has(at)) continue;
    const before = filled;
    await trying(async (transaction) => {
      await migrate(transaction);
      expect(await requireSchema(transaction)).toEqual({ later: 0 });
      const after = await everything(transaction);
      expectKept(before, after);
      expectDerived(after, at);
    });
  }
}, 300_000);

/** Checks the values that migrations derive from the rows that a database at `at` had. */
function expectDerived(tables: Tables, at: number): void {
  const of = (table: string, n: number) => tables.get(table)?.find((row) => Object.values(row).includes(`row-${n}`));
  for (let n = 2; n <= at; n += 1) expect(of("templates", n)).toMatchObject({ bytes: `{"n": ${n}}`.length });
  const free = tables.get("plans")?.find(({ name }) => name === "free");
  expect(free).toMatchObject({ queued_jobs_max: 100_000, queued_bytes_max: 268_435_456, hold_ms: 259_200_000 });
  // The token of each registration's device, for passes that have a pass type; the column came with the sixth migration.
  for (let n = 2; n <= Math.min(at, 4); n += 2)
    expect(of("pass_registrations", n)).toMatchObject({ push_token: `row-${n}` });
}
