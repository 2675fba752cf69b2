import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPglite } from "../../src/embedded/pglite.ts";
import { passConformance } from "./pass-conformance.ts";

passConformance("passes on PGlite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-pglite-"));
  const database = await openPglite(join(folder, "postgres"));
  return { connect: async () => database, remove: () => rm(folder, { recursive: true, force: true }) };
});
