import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openMadePglite } from "../support/made-home.ts";
import { registryConformance } from "./registry-conformance.ts";

registryConformance("the registry on PGlite", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waybill-pglite-"));
  const database = await openMadePglite(join(folder, "postgres"));
  return { connect: async () => database, remove: () => rm(folder, { recursive: true, force: true }) };
});
