import { expect, test } from "bun:test";
import { join } from "node:path";
import { configTable, withoutEffect } from "../../src/config.ts";

test("the README lists every setting as the program reads it", async () => {
  const readme = await Bun.file(join(import.meta.dir, "../../README.md")).text();
  expect(readme).toContain(`<!-- configuration -->\n\n${configTable()}\n\n<!-- /configuration -->`);
});

test("a setting that changes nothing yet is in no table, and is named when it is set", () => {
  expect(configTable()).not.toContain("WHATSAPP_API_URL");
  expect(withoutEffect({ WHATSAPP_API_URL: "https://a.example", PORT: "1", APNS_URL: "" })).toEqual([
    "WHATSAPP_API_URL",
  ]);
});
