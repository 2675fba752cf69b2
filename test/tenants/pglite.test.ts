import { afterAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { openPglite } from "../../src/storage/postgres/pglite.ts";

const home = await mkdtemp(join(tmpdir(), "waybill-pglite-"));
const folder = join(home, "postgres");
afterAll(() => rm(home, { recursive: true, force: true }));

const countFacts = async (db: Awaited<ReturnType<typeof openPglite>>["db"]) => {
  const [row] = await db.select({ count: sql<number>`count(*)::int` }).from(sql`facts`);
  return row?.count;
};

test("a folder that a killed process left unfinished is created anew", async () => {
  await mkdir(`${folder}.new`);
  await writeFile(join(`${folder}.new`, "PG_VERSION"), "unfinished");
  const database = await openPglite(folder);
  await database.db.execute(sql`create table facts (n int)`);
  await database.close();
  await database.close();
  expect(existsSync(`${folder}.new`)).toBe(false);
}, 300_000);

test("rows written before kill -9 are there after it", async () => {
  const writer = Bun.spawn([process.execPath, "-e", WRITER, folder], { stdout: "pipe", stderr: "inherit" });
  const output = writer.stdout.getReader();
  const { value } = await output.read();
  expect(new TextDecoder().decode(value)).toContain("written");
  writer.kill("SIGKILL");
  await writer.exited;
  const database = await openPglite(folder);
  expect(await countFacts(database.db)).toBe(200);
  await database.close();
}, 300_000);

/** Writes one fact after the other, prints so, and runs until it is ended. */
const WRITER = `
  const { openPglite } = await import(${JSON.stringify(join(import.meta.dir, "../../src/storage/postgres/pglite.ts"))});
  const { sql } = await import("drizzle-orm");
  const { db } = await openPglite(process.argv.at(-1));
  for (let n = 0; n < 200; n += 1) await db.execute(sql\`insert into facts values (\${n})\`);
  console.log("written");
  setInterval(() => undefined, 1000);
`;
