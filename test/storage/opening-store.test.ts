import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigurationError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { FolderLock } from "../../src/storage/folder-lock.ts";
import { openingStore, UnopenedStoreError } from "../../src/storage/opening-store.ts";
import { openPglite } from "../../src/storage/postgres/pglite.ts";
import { startRedisChild } from "../../src/storage/redis/redis-child.ts";
import { beginFolder } from "../../src/storage/unfinished-folder.ts";
import { runBun } from "../support/command.ts";
import { copyMadePostgres } from "../support/made-home.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { temporaryHome } from "../support/waybill.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-opening-"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** Returns the message that a person reads: one line, no stack. */
async function refusal(open: () => Promise<unknown>): Promise<string> {
  const error = await open().then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UnopenedStoreError);
  const said = error instanceof Error ? error.message : "";
  expect(said).not.toContain("\n");
  expect(said).toContain("copy the folder before anything else is tried");
  return said;
}

describe("a registry that does not open names its folder and the file", () => {
  let registry: string;

  beforeAll(async () => {
    registry = join(folder, "postgres");
    await copyMadePostgres(registry);
  }, 120_000);

  test.each([
    ["an empty pg_control", "global/pg_control", (file: string) => writeFile(file, ""), "global/pg_control"],
    ["flipped bytes in pg_control", "global/pg_control", flip, "incorrect checksum in control file"],
    ["no pg_control", "global/pg_control", (file: string) => rm(file), "global/pg_control"],
    ["no write-ahead log", "pg_wal", emptied, "could not locate a valid checkpoint record"],
    ["an empty PG_VERSION", "PG_VERSION", (file: string) => writeFile(file, ""), "PG_VERSION"],
    ["no PG_VERSION", "PG_VERSION", (file: string) => rm(file), "PG_VERSION"],
    [
      "files of another PostgreSQL",
      "PG_VERSION",
      (file: string) => writeFile(file, "12\n"),
      "by PostgreSQL version 12",
    ],
  ])(
    "with %s",
    async (_, path, damage, words) => {
      const kept = join(folder, "kept");
      await cp(join(registry, path), kept, { recursive: true });
      await damage(join(registry, path));
      const said = await refusal(() => openPglite(registry));
      expect(said).toStartWith(`the registry (PostgreSQL) does not open in ${registry}: `);
      expect(said).toContain(words);
      expect(existsSync(`${registry}.new`)).toBe(false);
      await rm(join(registry, path), { recursive: true, force: true });
      await cp(kept, join(registry, path), { recursive: true });
      await rm(kept, { recursive: true });
    },
    60_000,
  );

  test("and opens once the file is back", async () => {
    const database = await openPglite(registry);
    await database.close();
  }, 60_000);

  async function flip(file: string): Promise<void> {
    const bytes = await readFile(file);
    for (const [at, byte] of bytes.subarray(40, 48).entries()) bytes[40 + at] = byte ^ 0xff;
    await writeFile(file, bytes);
  }

  async function emptied(place: string): Promise<void> {
    for (const name of await readdir(place)) if (name.startsWith("0")) await rm(join(place, name));
  }
});

describe("a queue that does not open names its folder and the file", () => {
  const open = (place: string) =>
    startRedisChild({ folder: place, clock: systemClock, telemetry: new QuietTelemetry() });

  test.each([
    ["a part that is not there", "appendonly.aof.1.incr.aof", (file: string) => rm(file), "appendonly.aof.1.incr.aof"],
    [
      "a damaged list of its parts",
      "appendonly.aof.manifest",
      (file: string) => writeFile(file, "junk\n"),
      "AOF manifest",
    ],
    [
      "a base of a later Redis",
      "appendonly.aof.1.base.rdb",
      (file: string) => writeFile(file, "REDIS0999"),
      "appendonly.aof.1.base.rdb",
    ],
  ])("with %s", async (_, name, damage, words) => {
    const place = await mkdtemp(join(folder, "redis-"));
    await (await open(place)).stop();
    await damage(join(place, "appendonlydir", name));
    const said = await refusal(() => open(place));
    expect(said).toStartWith(`the queue (Redis) does not open in ${place}: `);
    expect(said).toContain(words);
  });
});

test("a lock that is damaged is refused with its name, and works once it is removed", async () => {
  const home = await mkdtemp(join(folder, "home-"));
  await writeFile(join(home, "lock"), "these words are no lock, and a database is something else");
  expect(() => FolderLock.acquire(home)).toThrow(ConfigurationError);
  expect(() => FolderLock.acquire(home)).toThrow(`${join(home, "lock")} cannot be locked (file is not a database)`);
  await rm(join(home, "lock"));
  FolderLock.acquire(home).release();
});

test("what an engine throws that is no error is said in words", async () => {
  const thrown = { name: "ErrnoError", errno: 51, node: {} };
  const said = await refusal(() => openingStore({ store: "the store", folder }, () => Promise.reject(thrown)));
  expect(said).toStartWith(`the store does not open in ${folder}: no space left on the disk (ENOSPC). `);
});

describe("a store's folder", () => {
  test("whose first start did not come to an end is emptied at the next, and is kept once it did", async () => {
    const place = join(folder, "store");
    await beginFolder(place);
    await mkdir(join(place, "metadata"));
    await writeFile(join(place, "metadata", "events.sql"), "");
    const isWhole = await beginFolder(place);
    expect(existsSync(join(place, "metadata"))).toBe(false);
    await writeFile(join(place, "rows"), "rows");
    await isWhole();
    await (await beginFolder(place))();
    expect(await readdir(place)).toEqual(["rows"]);
  });

  test("that an earlier release made is kept", async () => {
    const place = await mkdtemp(join(folder, "earlier-"));
    await writeFile(join(place, "rows"), "rows");
    await (await beginFolder(place))();
    expect(await readdir(place)).toEqual(["rows"]);
  });
});

test("an empty definition of the event store is named, and where its first start did not end the store is made anew", async () => {
  const home = await temporaryHome({ hasPostgres: false });
  try {
    const clickhouse = join(home.path, "clickhouse");
    const [definition = ""] = new Bun.Glob("store/**/events.sql").scanSync({ cwd: clickhouse, absolute: true });
    await writeFile(definition, "");
    expect(await openEvents(home.path)).toContain(
      `ClickHouse) does not open in ${clickhouse}: ${definition} is empty. It is`,
    );
    await writeFile(join(clickhouse, "unfinished"), "");
    expect(await openEvents(home.path)).toContain("it is open");
    expect(await openEvents(home.path)).toContain("it is open");
  } finally {
    await home.remove();
  }
}, 120_000);

/** Returns the output of a process that opens the event store: the engine opens one folder in each. */
async function openEvents(home: string): Promise<string> {
  const script = `
    import { CHANNELS } from "./src/app/channels.ts";
    import { openEventStore } from "./src/app/stores.ts";
    import { loadConfig } from "./src/config/config.ts";
    import { systemClock } from "./src/runtime/system-clock.ts";
    import { ProcessTelemetry } from "./src/runtime/telemetry/process-telemetry.ts";
    const telemetry = new ProcessTelemetry({ level: "silent", isTerminal: false });
    const config = loadConfig({ WAYBILL_HOME: ${JSON.stringify(home)} });
    const opened = openEventStore({ config, channels: CHANNELS, clock: systemClock, telemetry }, "leave");
    console.log(await opened.then(() => "it is open", ({ message }) => message));
    process.exit(0);
  `;
  return (await runBun(["-e", script], {})).output;
}
