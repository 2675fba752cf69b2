import { expect, test } from "bun:test";
import { join } from "node:path";
import { configTable } from "../../src/config/config.ts";

test("the README lists every setting as the program reads it", async () => {
  const readme = await Bun.file(join(import.meta.dir, "../../README.md")).text();
  expect(readme).toContain(`<!-- configuration -->\n\n${configTable()}\n\n<!-- /configuration -->`);
});
