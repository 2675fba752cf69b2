import { afterAll, expect, test } from "bun:test";
import { PGlite } from "@electric-sql/pglite";
import { sql } from "drizzle-orm";
import { integer, pgTable } from "drizzle-orm/pg-core";
import { drizzle } from "drizzle-orm/pglite";
import { among, insertPieces } from "../../src/storage/analysts/statement-texts.ts";
import { slug } from "../../src/storage/tables.ts";

const client = new PGlite();
const db = drizzle({ client });
afterAll(() => client.close());

const words = pgTable("words", { word: slug().notNull(), length: integer().notNull() });

test("a list names exactly its values, whatever characters they have", async () => {
  const all = ["", " ", "null", "a,b", "{}", '"', "\\", '\\"', "it's", "$1", "übergrößen 🎉", "line\nend", "NULL"];
  await db.execute(sql`create table words (word text collate "C" not null, length integer not null)`);
  await db.insert(words).values(all.map((word) => ({ word, length: word.length })));
  for (const word of all) {
    expect(
      await db
        .select()
        .from(words)
        .where(among(words.word, [word])),
    ).toEqual([{ word, length: word.length }]);
  }
  expect((await db.select().from(words).where(among(words.word, all))).length).toBe(all.length);
  expect(await db.select().from(words).where(among(words.word, []))).toEqual([]);
  expect(
    (
      await db
        .select()
        .from(words)
        .where(among(words.length, [0, 3]))
    ).map(({ word }) => word),
  ).toEqual(["", "a,b"]);
});

test("lists of any length make one text of a statement", () => {
  const renderSql = (values: string[]) => db.select().from(words).where(among(words.word, values)).toSQL().sql;
  expect(renderSql([])).toBe(renderSql(["a", "b", "c"]));
});

test("rows are inserted in pieces of few lengths, each once, in their order", () => {
  const lengths = new Set<number>();
  for (let length = 0; length <= 1_000; length += 1) {
    const rows = Array.from({ length }, (_, at) => at);
    const pieces = [...insertPieces(rows)];
    expect(pieces.flat()).toEqual(rows);
    for (const piece of pieces) lengths.add(piece.length);
  }
  expect(lengths.size).toBe(10);
});
