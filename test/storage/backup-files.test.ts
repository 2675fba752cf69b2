import { afterEach, beforeEach, expect, test } from "bun:test";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { BackupMetrics } from "../../src/app/backup-metrics.ts";
import { PlaceStore } from "../../src/channels/email/mail-log/place-store.ts";
import type { Series } from "../../src/domain/telemetry.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { BackupError, extractBackup, verifyBackup, writeBackup } from "../../src/storage/backup/archive.ts";
import { noteBackup } from "../../src/storage/backup/last-backup.ts";
import { Mirror } from "../../src/storage/backup/mirror.ts";
import { listEntries, STAGING } from "../../src/storage/backup/parts.ts";
import { takeCut } from "../../src/storage/backup/running-cut.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-backup-files-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Every file below the folder, with its content. */
async function readContents(path: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const entry of await readdir(path, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (entry.isFile()) found[file.slice(path.length + 1)] = await readFile(file, "utf8");
  }
  return found;
}

const AN_HOUR_MS = 3_600_000;
/** The age of files that are copied long after they were written. */
const longAfter = () => Date.now() + AN_HOUR_MS;

test("a mirror has what the folder has now, and copies only what may have changed", async () => {
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  await mkdir(join(from, "parts"), { recursive: true });
  for (const name of ["old", "changed", "gone", "parts/old"]) await writeFile(join(from, name), "first");
  const mirror = new Mirror(from, to, longAfter);
  await mirror.update();
  expect(await readContents(to)).toEqual({ old: "first", changed: "first", gone: "first", "parts/old": "first" });
  await writeFile(join(from, "changed"), "again");
  await writeFile(join(from, "parts/new"), "first");
  await rm(join(from, "gone"));
  // A copy that starts anew would lose this.
  await writeFile(join(to, "old"), "ours!");
  await mirror.update();
  expect(await readContents(to)).toEqual({
    old: "ours!",
    changed: "again",
    "parts/old": "first",
    "parts/new": "first",
  });
  expect((await stat(to)).mode & 0o777).toBe(0o700);
});

test("a mirror copies what was changed while the clock was set back, and what was too young to tell", async () => {
  const [from, to] = [join(folder, "from"), join(folder, "to")];
  await mkdir(from);
  for (const name of ["set back", "as old as before"]) await writeFile(join(from, name), "first");
  const { atime, mtime } = await stat(join(from, "as old as before"));
  const mirror = new Mirror(from, to, longAfter);
  await mirror.update();
  for (const name of ["set back", "as old as before"]) await writeFile(join(from, name), "again");
  const before = new Date(Date.now() - AN_HOUR_MS);
  await utimes(join(from, "set back"), before, before);
  await utimes(join(from, "as old as before"), atime, mtime);
  await mirror.update();
  expect(await readContents(to)).toEqual({ "set back": "again", "as old as before": "again" });

  const young = new Mirror(from, to);
  await young.update();
  await writeFile(join(to, "set back"), "older");
  await young.update();
  expect(await readContents(to)).toEqual({ "set back": "again", "as old as before": "again" });
});

test("of a data folder's parts an empty one is backed up, and one that is missing is not", async () => {
  for (const path of ["payloads", "postgres/base"]) await mkdir(join(folder, path), { recursive: true });
  for (const file of ["operator-token", "lock", "postgres/base/1"]) await writeFile(join(folder, file), "12345");
  const found: (readonly [path: string, bytes: number | null])[] = [];
  for await (const { path, bytes } of listEntries(folder, new Map([["postgres/base/1", 3]]))) found.push([path, bytes]);
  expect(found).toEqual([
    ["operator-token", 5],
    ["postgres", null],
    ["postgres/base", null],
    ["postgres/base/1", 3],
    ["payloads", null],
  ]);
});

test("a backup of a start that was killed has the mail log's last place", async () => {
  const [home, killed, restored] = [join(folder, "home"), join(folder, "killed"), join(folder, "restored")];
  const place = { inode: "7", offset: 4711, head: { bytes: 3, digest: "abc" } };
  const store = PlaceStore.open(home, "/var/log/mail.log");
  store.save(place, new Map());
  // A kill leaves the files that are on the disk while the database is open.
  await cp(home, killed, { recursive: true });
  store.close();
  const file = join(folder, "backup.tar.zst");
  const facts = { version: "1.0.0", takenAt: "2026-11-22T05:00:00Z", cutMs: 1, wasRunning: false };
  await writeBackup(file, listEntries(killed), facts, { onPart() {} });
  await extractBackup(file, restored);
  const again = PlaceStore.open(restored, "/var/log/mail.log");
  expect(again.place()).toEqual(place);
  again.close();
});

test("a copy of a running start has the mail log's last place in the database itself", async () => {
  const place = { inode: "7", offset: 4711, head: { bytes: 3, digest: "abc" } };
  const store = PlaceStore.open(folder, "/var/log/mail.log");
  store.save(place, new Map());
  const postgres = { copyTo: () => Promise.reject(new Error("far enough")) };
  await expect(takeCut({ home: folder, postgres } as never)).rejects.toThrow("far enough");
  store.close();
  const copy = join(folder, STAGING);
  expect((await readdir(copy)).filter((name) => name.startsWith("mail-log"))).toEqual(["mail-log.sqlite"]);
  const copied = PlaceStore.open(copy, "/var/log/mail.log");
  expect(copied.place()).toEqual(place);
  copied.close();
});

test("a backup whose content differs from its manifest is refused, even if it can be read to its end", async () => {
  const file = join(folder, "backup.tar.zst");
  const token = join(folder, "operator-token");
  await writeFile(token, "a token of operators");
  const entries = async function* () {
    yield { path: "operator-token", file: token, bytes: 20 };
  };
  const facts = { version: "1.0.0", takenAt: "2026-11-22T05:00:00Z", cutMs: 1, wasRunning: false };
  const manifest = await writeBackup(file, entries(), facts, { onPart() {} });
  expect(manifest.parts.secrets).toMatchObject({ files: 1, bytes: 20 });
  expect(await verifyBackup(file)).toEqual(manifest);
  await extractBackup(file, join(folder, "whole"));
  expect(await readContents(join(folder, "whole"))).toEqual({ "operator-token": "a token of operators" });
  const tar = zstdDecompressSync(await readFile(file));
  tar.write("b", tar.indexOf("a token of operators"));
  await writeFile(file, zstdCompressSync(tar));
  const refused = new BackupError("the sums of its part secrets differ from its manifest");
  await expect(verifyBackup(file)).rejects.toEqual(refused);
  await expect(extractBackup(file, join(folder, "altered"))).rejects.toEqual(refused);
});

test("a backup that cannot be read back leaves the former file of its name alone", async () => {
  const file = join(folder, "kept.tar.zst");
  const token = join(folder, "token");
  await writeFile(file, "the former backup");
  await writeFile(token, "a token");
  const entries = async function* () {
    yield { path: "payloads/../token", file: token, bytes: 7 };
  };
  const facts = { version: "1.0.0", takenAt: "2026-11-22T05:00:00Z", cutMs: 1, wasRunning: false };
  const refused = new BackupError(`it holds "payloads/../token", which is no part of a data folder`);
  await expect(writeBackup(file, entries(), facts, { onPart() {} })).rejects.toEqual(refused);
  expect(await readFile(file, "utf8")).toBe("the former backup");
  expect((await readdir(folder)).filter((name) => name.startsWith("kept"))).toEqual(["kept.tar.zst"]);
});

test("a backup that finds no room says so in one sentence, and leaves neither a file nor an error behind", async () => {
  const home = join(folder, "home");
  await mkdir(join(home, "payloads"), { recursive: true });
  // Incompressible bytes.
  for (const name of ["a", "b"])
    await writeFile(join(home, "payloads", name), crypto.getRandomValues(new Uint8Array(60_000)));
  const target = join(folder, "backups", "one.tar.zst");
  const script = `
    import { writeBackup } from "${import.meta.dir}/../../src/storage/backup/archive.ts";
    import { listEntries } from "${import.meta.dir}/../../src/storage/backup/parts.ts";
    const facts = { version: "1.0.0", takenAt: "2026-01-01T00:00:00.000Z", cutMs: 0, wasRunning: false };
    await writeBackup("${target}", listEntries("${home}"), facts, { onPart() {} }).catch((error) => console.log(error.name, error.message));`;
  // As on a full disk: no file of the process may have more than 50 KiB.
  const limited = ["bash", "-c", `trap '' XFSZ; ulimit -f 50; exec "$0" -e "$1"`, process.execPath, script];
  const child = Bun.spawn(limited, { stdout: "pipe", stderr: "pipe" });
  const [said, failed] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect([await child.exited, failed]).toEqual([0, ""]);
  expect(said).toStartWith(`BackupError the backup ${target} could not be written, and nothing of it is left: EFBIG`);
  expect(await readdir(join(folder, "backups"))).toEqual([]);
});

test("the age of the last backup is known to scrapers, and that of the folder as long as there was none", async () => {
  const series = new Map<string, readonly Series[]>();
  const telemetry = { series: (name: string, values: readonly Series[]) => void series.set(name, values), log() {} };
  const embedded = { home: folder, redis: null, databaseUrl: null, clickhouseUrl: null };
  const measure = async (aheadMs: number, stores: Partial<Parameters<typeof createMetrics>[0]> = {}) => {
    await createMetrics({ ...embedded, ...stores }, aheadMs).refresh();
    const [first] = series.get("last_backup_age_seconds") ?? [];
    return first?.[1];
  };
  const createMetrics = (stores: ConstructorParameters<typeof BackupMetrics>[1], aheadMs: number) =>
    new BackupMetrics({ clock: { ...systemClock, nowMs: () => Date.now() + aheadMs }, telemetry }, stores);
  expect(await measure(AN_HOUR_MS, { databaseUrl: "postgres://x" })).toBeUndefined();
  expect(await measure(AN_HOUR_MS)).toBeWithin(3_590, 3_700);
  await noteBackup(folder, Date.now() - 7 * AN_HOUR_MS);
  expect(await measure(0)).toBeWithin(25_190, 25_300);
  await writeFile(join(folder, "last-backup"), "not a time");
  expect(await measure(AN_HOUR_MS)).toBeWithin(3_590, 3_700);
  await rm(folder, { recursive: true });
  expect(await measure(0)).toBeUndefined();
});
