import { openRemotePglite } from "../../src/storage/postgres/remote-pglite.ts";
import { startServedEngine } from "../support/served-engine.ts";
import { registryConformance } from "./registry-conformance.ts";

registryConformance("the registry on a PGlite of another process", async () => {
  const engine = await startServedEngine();
  return { connect: async () => openRemotePglite(engine.calls), remove: () => engine.stop() };
});
