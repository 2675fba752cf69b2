import { test } from "bun:test";
import { connectPostgres } from "../../../src/storage/postgres/connect-postgres.ts";
import { createPostgres, postgresMissing } from "../../support/postgres.ts";
import { deviceConformance } from "./device-conformance.ts";

const missing = postgresMissing();

if (missing === null) {
  deviceConformance("devices on PostgreSQL 15", async () => {
    const server = await createPostgres();
    return { connect: () => connectPostgres(server.url), remove: () => server.remove() };
  });
} else {
  test.skip(`devices on PostgreSQL 15: ${missing}`, () => undefined);
}
