import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import type { OpenDatabase } from "../../src/storage/database.ts";
import { rowsOf } from "../../src/storage/rows-of.ts";
import { Vacuum } from "../../src/storage/vacuum.ts";
import { temporaryPglite } from "../support/made-home.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const SLOW_MS = 60_000;
const DAY_MS = 86_400_000;
let database: OpenDatabase;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ database, remove } = await temporaryPglite());
  await database.db.execute(sql`create table "Large values" (id int primary key, value bytea)`);
}, SLOW_MS);
afterAll(async () => {
  await database?.close();
  await remove?.();
}, SLOW_MS);

function vacuum(clock = new VirtualClock(Date.now())) {
  const telemetry = new QuietTelemetry();
  return { clock, telemetry, vacuum: new Vacuum({ db: database.db, clock, telemetry }) };
}

/** Stores and removes 2 MB in pieces that PostgreSQL cannot make smaller. */
async function storeAndRemove(): Promise<void> {
  for (let i = 0; i < 20; i += 1) {
    const value = crypto.getRandomValues(new Uint8Array(50_000));
    for (let at = 0; at < 2; at += 1)
      await database.db.execute(sql`insert into "Large values" values (${at}, ${value})`);
    await database.db.execute(sql`delete from "Large values"`);
  }
}

async function bytes(): Promise<number> {
  const [row] = rowsOf(await database.db.execute(sql`select pg_total_relation_size('"Large values"') as bytes`));
  return Number(row?.["bytes"]);
}

test("the room of removed values is used again", async () => {
  await storeAndRemove();
  const once = await bytes();
  expect(once).toBeGreaterThan(2_000_000);
  const { vacuum: kept, telemetry } = vacuum();
  for (let round = 0; round < 4; round += 1) {
    await kept.look();
    await storeAndRemove();
  }
  expect(await bytes()).toBeLessThan(1.5 * once);
  expect(telemetry.lines).toEqual([]);
});

test("what a process that was killed has left is made room of within a day", async () => {
  await storeAndRemove();
  // As after a crash, which loses the counts.
  await database.db.execute(sql`select pg_stat_reset()`);
  const before = await bytes();
  const { vacuum: kept, clock } = vacuum();
  await kept.look();
  expect(await bytes()).toBe(before);
  await clock.advance(DAY_MS);
  await kept.look();
  expect(await bytes()).toBeLessThan(before / 2);
});

test("one that cannot be made room of is told, and tried again", async () => {
  const { db } = database;
  let isAway = true;
  const telemetry = new QuietTelemetry();
  const execute: typeof db.execute = (query) => {
    if (isAway) throw new Error("the disk is full");
    return db.execute(query);
  };
  const kept = new Vacuum({ db: Object.assign(Object.create(db), { execute }), clock: new VirtualClock(0), telemetry });
  await kept.look();
  expect(telemetry.lines).toHaveLength(1);
  isAway = false;
  await storeAndRemove();
  const before = await bytes();
  await kept.look();
  expect(await bytes()).toBeLessThan(before / 2);
});
