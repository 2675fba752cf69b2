import { expect, test } from "bun:test";
import { join } from "node:path";
import { configTable, withoutEffect } from "../../src/config/config.ts";
import type { Setting } from "../../src/config/setting.ts";
import { SETTINGS } from "../../src/config/settings.ts";

test("the README lists every setting as the program reads it", async () => {
  const readme = await Bun.file(join(import.meta.dir, "../../README.md")).text();
  expect(readme).toContain(`<!-- configuration -->\n\n${configTable()}\n\n<!-- /configuration -->`);
});

test("a setting that changes nothing yet is in no table, and is named when it is set", () => {
  const isPlanned = (setting: Setting<unknown>) => setting.planned === true;
  const planned = Object.values<Setting<unknown>>(SETTINGS).filter(isPlanned);
  for (const { name } of planned) expect(configTable()).not.toContain(`\`${name}\``);
  const everySet = Object.fromEntries(Object.values(SETTINGS).map(({ name }) => [name, "1"]));
  expect(withoutEffect(everySet)).toEqual(planned.map(({ name }) => name));
  expect(withoutEffect(Object.fromEntries(planned.map(({ name }) => [name, ""])))).toEqual([]);
});
