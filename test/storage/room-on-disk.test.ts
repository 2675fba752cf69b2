import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigurationError } from "../../src/domain/errors.ts";
import { requireRoom } from "../../src/storage/room-on-disk.ts";
import { runCommand } from "../support/command.ts";
import { Undo } from "../support/undo.ts";

const undo = new Undo();
const ALL = { queue: true, registry: true, eventStore: true };

afterEach(() => undo.run());

/** A disk with that much on it, if this machine can mount one. */
async function disk(kib: number): Promise<string> {
  const path = undo.add(await mkdtemp(join(tmpdir(), "waybill-disk-")), (one) => rm(one, { recursive: true }));
  mount(path, `size=${kib}k,nr_inodes=5000,mode=700`);
  undo.add(path, (one) => Bun.spawnSync(["umount", "-l", one]));
  return path;
}

function mount(path: string, options: string): boolean {
  return Bun.spawnSync(["mount", "-t", "tmpfs", "-o", options, "waybill-test", path]).success;
}

const probe = await mkdtemp(join(tmpdir(), "waybill-mount-"));
const canMount = process.platform === "linux" && mount(probe, "size=4k");
if (canMount) Bun.spawnSync(["umount", probe]);
await rm(probe, { recursive: true, force: true });

describe.skipIf(!canMount)("a start on a disk of its own", () => {
  test.each([4, 8, 16, 64, 1_024, 16_384])("of %d KiB is refused in one line before anything is made", async (kib) => {
    const home = join(await disk(kib), "home");
    expect(() => requireRoom(home, ALL)).toThrow(ConfigurationError);
    expect(() => requireRoom(home, ALL)).toThrow(
      /^the disk of \S+ has \d+ [KM]iB free, and a start needs \d+ MiB there/,
    );
  });

  test("has the room for a first start on 64 MiB, and for a later one on much less", async () => {
    requireRoom(join(await disk(64 * 1_024), "home"), ALL);
    const home = await disk(20 * 1_024);
    for (const name of ["postgres", "clickhouse"]) mkdirSync(join(home, name, "made"), { recursive: true });
    requireRoom(home, ALL);
  });

  test("without an inode left is refused as well", async () => {
    const home = await disk(64 * 1_024);
    Bun.spawnSync(["mount", "-o", "remount,nr_inodes=500", home]);
    expect(() => requireRoom(home, ALL)).toThrow(/free inodes, and a start needs/);
  });

  test("whose stores are servers needs room for its secrets alone", async () => {
    requireRoom(await disk(2_048), { queue: false, registry: false, eventStore: false });
  });

  test("says so with exit code 2, and leaves the folder as it was", async () => {
    const home = await disk(64);
    const { code, errors } = await runCommand(["serve"], { WAYBILL_HOME: home });
    expect(errors).toMatch(
      /^waybill: the disk of \S+ has 64 KiB free, and a start needs \d+ MiB there: .*nothing was changed\n$/,
    );
    expect(code).toBe(2);
    expect(readdirSync(home)).toEqual([]);
  }, 60_000);
});
