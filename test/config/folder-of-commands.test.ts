import { afterAll, expect, spyOn, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openConfigOfRegistry } from "../../src/commands/command-line.ts";

const folder = await mkdtemp(join(tmpdir(), "waybill-commands-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

test("a command that needs a registry refuses a folder without one, and makes nothing there", () => {
  const home = join(folder, "elsewhere");
  const open = () => openConfigOfRegistry({ WAYBILL_HOME: home }, { mayBegin: false });
  expect(open).toThrow(`there is no Waybill in ${home}`);
  expect(existsSync(home)).toBe(false);
});

test("one that can be the first begins in a folder that is named, and says so", () => {
  const home = join(folder, "chosen");
  using said = spyOn(console, "error").mockImplementation(() => {});
  expect(openConfigOfRegistry({ WAYBILL_HOME: home }, { mayBegin: true }).home).toBe(home);
  expect(said.mock.calls).toEqual([[expect.stringContaining(`there was no Waybill in ${home}`)]]);
});
