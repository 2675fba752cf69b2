import { defineConfig } from "drizzle-kit";

/** For `drizzle-kit generate --config src/registry/drizzle.config.ts`, run from the repository's root. */
export default defineConfig({
  dialect: "postgresql",
  schema: "./src/registry/schema.ts",
  out: "./src/registry/migrations",
});
