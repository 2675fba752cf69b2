import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import type { EmbeddedPostgres } from "../../src/storage/postgres/pglite.ts";
import { ensureIdentity, noteMasterKey, readIdentity } from "../../src/storage/registry-identity.ts";
import { temporaryPglite } from "../support/made-home.ts";

let postgres: EmbeddedPostgres;
let remove: () => Promise<void>;

beforeAll(async () => {
  ({ database: postgres, remove } = await temporaryPglite());
  await ensureIdentity(postgres.db);
}, 90_000);

afterAll(async () => {
  await postgres?.close();
  await remove?.();
});

test("a registry keeps its id, and the id of the key that seals", async () => {
  const { db } = postgres;
  const { registry } = await readIdentity(db);
  await noteMasterKey(db, "0a1b2c3d");
  await ensureIdentity(db);
  expect(await readIdentity(db)).toMatchObject({ registry, masterKey: "0a1b2c3d" });
  await noteMasterKey(db, "4e5f6071");
  expect((await readIdentity(db)).masterKey).toBe("4e5f6071");
});

test("a database without one is to be migrated, and gets another than its copy", async () => {
  const { db } = postgres;
  const { registry } = await readIdentity(db);
  await db.execute(sql`delete from registry_identity`);
  await expect(readIdentity(db)).rejects.toThrow("run `waybill migrate`");
  await ensureIdentity(db);
  const fresh = await readIdentity(db);
  expect(fresh.masterKey).toBeNull();
  expect(fresh.registry).not.toBe(registry);
});
