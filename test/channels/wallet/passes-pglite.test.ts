import { temporaryPglite } from "../../support/made-home.ts";
import { passConformance } from "./pass-conformance.ts";

passConformance("passes on PGlite", async () => {
  const { database, remove } = await temporaryPglite();
  return { connect: async () => database, remove };
});
