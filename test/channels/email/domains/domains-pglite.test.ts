import { temporaryPglite } from "../../../support/made-home.ts";
import { domainConformance } from "./domain-conformance.ts";

domainConformance("domains on PGlite", async () => {
  const { database, remove } = await temporaryPglite();
  return { connect: async () => database, remove };
});
