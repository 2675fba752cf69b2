import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { PrivateNodeFs } from "../../src/storage/postgres/pglite.ts";
import { copyMadePostgres } from "../support/made-home.ts";

let parent: string;
const synced: string[] = [];
let client: PGlite;
let fault: Error | null = null;

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), "waybill-syncs-"));
  const folder = join(parent, "postgres");
  await copyMadePostgres(folder);
  client = await PGlite.create({
    fs: new PrivateNodeFs(folder, (path) => {
      if (fault !== null) throw fault;
      synced.push(path.slice(folder.length + 1));
    }),
  });
}, 300_000);

afterAll(async () => {
  await client.close();
  await rm(parent, { recursive: true, force: true });
});

test("a change waits for no disk; a checkpoint has all that it needs on disk before it is named", async () => {
  await client.exec("create table lines (line text)");
  await client.exec("checkpoint");
  synced.length = 0;
  await client.exec("insert into lines select repeat('x', 100) from generate_series(1, 2000)");
  expect(synced).toEqual([]);
  await client.exec("checkpoint");
  expect(synced.at(-1)).toBe("global/pg_control");
  const before = synced.slice(0, synced.indexOf("global/pg_control"));
  expect(before).toContainEqual(expect.stringMatching(/^pg_wal\/[0-9A-F]{24}$/));
  const [{ place } = { place: "" }] = (
    await client.query<{ place: string }>("select pg_relation_filepath('lines') as place")
  ).rows;
  expect(before).toContain(place);
  expect(before.some((path) => path.startsWith("pg_xact/"))).toBe(true);
});

test("what cannot be synced stops nothing", async () => {
  fault = Object.assign(new Error("the disk is away"), { code: "EIO" });
  await client.exec("insert into lines values ('kept')");
  await client.exec("checkpoint");
  fault = null;
  await client.exec("checkpoint");
  expect((await client.query("select line from lines where line = 'kept'")).rows).toEqual([{ line: "kept" }]);
});
