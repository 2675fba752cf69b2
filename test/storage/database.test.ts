import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { isOutage, UnavailableError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { Database } from "../../src/storage/postgres/database.ts";
import { sqlState } from "../../src/storage/postgres/sql-state.ts";
import { temporaryPglite } from "../support/made-home.ts";

let made: Awaited<ReturnType<typeof temporaryPglite>>;
let database: Database;
beforeAll(async () => {
  made = await temporaryPglite();
  database = new Database(made.database.db, systemClock);
}, 90_000);
afterAll(async () => {
  await made.database.close();
  await made.remove();
});

async function catchError(call: Promise<unknown>): Promise<Error> {
  const error: unknown = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error("it did not fail");
  return error;
}

test.each(["read", "write"] as const)(
  "a statement that fails at a %s tells which it was and why, and nothing of its parameters",
  async (how) => {
    const error = await catchError(database[how]((db) => db.execute(sql`SELECT ${"ann@example.com"}::int AS shown`)));
    expect(error.message).toContain("(22P02): SELECT $1::int AS shown");
    expect(`${error.message}${error.stack}`).not.toContain("ann@");
    expect(sqlState(error).state).toBe("22P02");
  },
);

test("a standby that has not taken over yet is an outage", async () => {
  const change = database.write(async (db) => {
    await db.execute(sql`SET TRANSACTION READ ONLY`);
    await db.execute(sql`DELETE FROM tenants`);
  });
  expect(await catchError(change)).toBeInstanceOf(UnavailableError);
});

/** Out of file descriptors or disk, a file that cannot be read or has moved, starting up, full of sessions. */
test.each(["53000", "53100", "53300", "57P03", "58000", "58030", "58P01", "58P02"])(
  "what the server's machine lacks (%s) is an outage, at a read and at a write",
  async (state) => {
    const raise = sql.raw(`DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '${state}'; END $$`);
    for (const how of ["read", "write"] as const) {
      expect(isOutage(await catchError(database[how]((db) => db.execute(raise))))).toBe(true);
    }
  },
);
