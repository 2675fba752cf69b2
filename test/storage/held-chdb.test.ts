import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openChdb } from "../../src/storage/chdb.ts";

test("the engine is not closed in the middle of a statement that a hold has left to end by itself", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-held-chdb-"));
  const chdb = openChdb(folder);
  let hasEnded = false;
  await chdb.hold(async (alone) => {
    const statement = alone.query({ query: "SELECT sleep(1)", format: "JSONCompact" });
    void statement.then(() => (hasEnded = true));
  });
  await chdb.close();
  expect(hasEnded).toBe(true);
  await rm(folder, { recursive: true, force: true });
});
