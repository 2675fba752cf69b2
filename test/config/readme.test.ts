import { expect, test } from "bun:test";
import { join } from "node:path";
import { configTable, withoutEffect } from "../../src/config.ts";

test("the README lists every setting as the program reads it", async () => {
  const readme = await Bun.file(join(import.meta.dir, "../../README.md")).text();
  expect(readme).toContain(`<!-- configuration -->\n\n${configTable()}\n\n<!-- /configuration -->`);
});

test("a setting that changes nothing yet is in no table, and is named when it is set", () => {
  expect(configTable()).not.toContain("SPAM_FILTER");
  expect(withoutEffect({ SPAM_FILTER: "off", PORT: "1", MAIL_LOG: "" })).toEqual(["SPAM_FILTER"]);
});
