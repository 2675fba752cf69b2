import { test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectPostgres } from "../../src/storage/postgres/connect-postgres.ts";
import type { OpenDatabase } from "../../src/storage/postgres/database.ts";
import { migrate } from "../../src/storage/postgres/migrate.ts";
import { MemoryPayloads } from "../http/support/memory-payloads.ts";
import { openMadePglite } from "../support/made-home.ts";
import { must } from "../support/must.ts";
import { payloadConformance } from "../support/payload-conformance.ts";
import { createPostgres, postgresMissing } from "../support/postgres.ts";
import { openTestRegistry } from "../tenants/open-test-registry.ts";

async function open(database: OpenDatabase, remove: () => Promise<unknown>) {
  await migrate(database.db);
  const { registry, payloads: store, stop } = await openTestRegistry(database);
  for (const id of ["acme", "globex"]) await must(registry.createTenant({ id, name: id }));
  const close = async () => {
    await stop();
    await database.close();
    await remove();
  };
  return { store, close };
}

payloadConformance("payloads on PGlite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-pglite-"));
  return open(await openMadePglite(join(folder, "postgres")), () => rm(folder, { recursive: true, force: true }));
});

payloadConformance("payloads of the tests, in memory", async () => ({
  store: new MemoryPayloads(),
  close: async () => undefined,
}));

const missing = postgresMissing();

if (missing === null) {
  payloadConformance("payloads on PostgreSQL 15", async () => {
    const server = await createPostgres();
    return open(await connectPostgres(server.url), () => server.remove());
  });
} else {
  test.skip(`payloads on PostgreSQL 15: ${missing}`, () => undefined);
}
