import { temporaryPglite } from "../../support/made-home.ts";
import { deviceConformance } from "./device-conformance.ts";

deviceConformance("devices on PGlite", async () => {
  const { database, remove } = await temporaryPglite();
  return { connect: async () => database, remove };
});
