import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import type { OpenDatabase } from "../../src/storage/postgres/database.ts";
import { readRows } from "../../src/storage/postgres/rows-of.ts";
import { Upkeep } from "../../src/storage/upkeep.ts";
import { temporaryPglite } from "../support/made-home.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const SLOW_MS = 60_000;
const DAY_MS = 86_400_000;
const PLENTY = 1e12;
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

function upkeep(clock = new VirtualClock(Date.now())) {
  const telemetry = new QuietTelemetry();
  return { clock, telemetry, upkeep: new Upkeep({ db: database.db, clock, telemetry, freeBytes: () => PLENTY }) };
}

/** Stores an incompressible value, updates it until `megabytes` are written, and removes it. */
async function storeAndRemove(megabytes = 2): Promise<void> {
  const { db } = database;
  const value = new Uint8Array(500_000);
  for (let at = 0; at < value.length; at += 50_000) crypto.getRandomValues(value.subarray(at, at + 50_000));
  await db.execute(sql`insert into "Large values" values (1, ${value})`);
  for (let i = 1; i < 2 * megabytes; i += 1) await db.execute(sql`update "Large values" set value = value || '\\x00'`);
  await db.execute(sql`delete from "Large values"`);
}

async function bytes(): Promise<number> {
  const [row] = readRows(await database.db.execute(sql`select pg_total_relation_size('"Large values"') as bytes`));
  return Number(row?.["bytes"]);
}

/** The size of the write-ahead log. */
async function bytesToReplay(): Promise<number> {
  const bytes = sql`select pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn) as bytes from pg_control_checkpoint()`;
  return Number(readRows(await database.db.execute(bytes))[0]?.["bytes"]);
}

test("the room of removed values is used again", async () => {
  const { upkeep: kept, telemetry } = upkeep();
  await kept.look();
  await storeAndRemove();
  const once = await bytes();
  expect(once).toBeGreaterThan(1_900_000);
  for (let round = 0; round < 4; round += 1) {
    await kept.look();
    await storeAndRemove();
  }
  expect(await bytes()).toBeLessThan(1.5 * once);
  expect(telemetry.lines).toEqual([]);
});

test("what a former process has left in large tables is reclaimed by the first look, and within a day", async () => {
  const { upkeep: kept, clock } = upkeep();
  for (const wait of [0, DAY_MS]) {
    // More than 8 MiB.
    await storeAndRemove(10);
    // A process that ends takes the counts with it.
    await database.db.execute(sql`select pg_stat_force_next_flush()`);
    await database.db.execute(sql`select pg_stat_reset()`);
    const before = await bytes();
    if (wait > 0) {
      await kept.look();
      expect(await bytes()).toBe(before);
    }
    await clock.advance(wait);
    await kept.look();
    expect(await bytes()).toBeLessThan(before / 2);
  }
});

test(
  "the write-ahead log stays small while much is written, and is checked after a while when little is",
  async () => {
    const { upkeep: kept, clock } = upkeep();
    for (let round = 0; round < 2; round += 1) {
      for (let i = 0; i < 8; i += 1) await storeAndRemove();
      await kept.look();
      expect(await bytesToReplay()).toBeLessThan(16 * 1024 * 1024);
    }
    await storeAndRemove();
    await kept.look();
    expect(await bytesToReplay()).toBeGreaterThan(1_000_000);
    await clock.advance(5 * 60_000);
    await kept.look();
    expect(await bytesToReplay()).toBeLessThan(100_000);
  },
  SLOW_MS,
);

test("a failure is told, and the next look tries again", async () => {
  const { db } = database;
  let isAway: boolean;
  const telemetry = new QuietTelemetry();
  const execute: typeof db.execute = (query) => {
    if (isAway) throw new Error("the disk is full");
    return db.execute(query);
  };
  const kept = new Upkeep({
    db: Object.assign(Object.create(db), { execute }),
    clock: new VirtualClock(0),
    telemetry,
    freeBytes: () => PLENTY,
  });
  isAway = false;
  await kept.look();
  isAway = true;
  await kept.look();
  expect(telemetry.lines).toHaveLength(2);
  isAway = false;
  await storeAndRemove();
  const before = await bytes();
  await kept.look();
  expect(await bytes()).toBeLessThan(before / 2);
});

test("on a disk that is all but full nothing is written until there is room again", async () => {
  let free = 1_000_000;
  const telemetry = new QuietTelemetry();
  const kept = new Upkeep({ db: database.db, clock: new VirtualClock(0), telemetry, freeBytes: () => free });
  for (let i = 0; i < 10; i += 1) await storeAndRemove();
  const replayed = await bytesToReplay();
  expect(replayed).toBeGreaterThan(16 * 1024 * 1024);
  await kept.look();
  expect(await bytesToReplay()).toBeGreaterThanOrEqual(replayed);
  expect(telemetry.lines).toEqual(["warn: the registry's files are not kept small: their disk is full"]);
  free = PLENTY;
  await kept.look();
  expect(await bytesToReplay()).toBeLessThan(1_000_000);
});

test("a disk that cannot be asked is told, and ends nothing", async () => {
  const telemetry = new QuietTelemetry();
  const freeBytes = () => {
    throw new Error("EIO");
  };
  await new Upkeep({ db: database.db, clock: new VirtualClock(0), telemetry, freeBytes }).look();
  expect(telemetry.lines).toEqual(["warn: the registry's files could not be kept small"]);
});
