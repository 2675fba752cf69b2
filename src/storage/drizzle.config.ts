import { defineConfig } from "drizzle-kit";

/** For `drizzle-kit generate --config src/storage/drizzle.config.ts`, run from the repository's root. */
export default defineConfig({
  dialect: "postgresql",
  schema: "./src/**/tables.ts",
  out: "./src/storage/migrations",
});
