import type { Dirent } from "node:fs";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { UNFINISHED } from "../whole-file.ts";
import { isMissing } from "./missing.ts";

/** The parts of a backup. */
export const PARTS = ["secrets", "queue", "registry", "events", "payloads"] as const;
export type Part = (typeof PARTS)[number];

/** The folder in which a running start prepares a backup. If a crash leaves it there, the next start removes it. */
export const STAGING = "backup.unfinished";

const FOLDERS: Readonly<Record<string, Part>> = {
  redis: "queue",
  postgres: "registry",
  clickhouse: "events",
  payloads: "payloads",
};

/**
 * Files of the first level that belong to a running process. That process must not even open them here: the kernel drops its
 * lock on a file as soon as it closes any descriptor of it.
 */
const OF_A_PROCESS = /^(lock|lock\.pid|control|control\.sock)$|\.unfinished$|-shm$/;
const MANIFEST = "appendonly.aof.manifest";

/** A file or folder to be backed up. */
export interface Entry {
  /** Below the data folder, with `/` between its parts. */
  readonly path: string;
  /** Its current location. */
  readonly file: string;
  /** Null: a folder. If the file still grows, only its first `bytes` belong to the backup. */
  readonly bytes: number | null;
}

/** Returns the part that a path of the data folder belongs to, or null. */
export function findPart(path: string): Part | null {
  const [first = "", ...below] = path.split("/");
  if (below.length === 0) return FOLDERS[first] ?? "secrets";
  return FOLDERS[first] ?? null;
}

/**
 * Lists the entries of a backup of `home`, which must not be written to: the folder of a stopped start, or the copy of
 * a running one. One part after the other. `lengths` has the lengths of the files that still grow, by path.
 */
export async function* listEntries(
  home: string,
  lengths: ReadonlyMap<string, number> = new Map(),
): AsyncGenerator<Entry> {
  for (const name of await names(home)) {
    if (isKept(name)) yield await fileAt(home, name.name, lengths);
  }
  yield* appendOnlyFiles(home, lengths);
  for (const folder of ["postgres", "clickhouse", "payloads"]) yield* below(home, folder, lengths);
}

/**
 * Whether an entry of the first level is a file of the installation: a secret, or the mail log's position, whose last
 * changes are in `-wal` after its process was killed.
 */
export function isKept(entry: Dirent): boolean {
  return entry.isFile() && !OF_A_PROCESS.test(entry.name);
}

/** Lists the append-only files that the manifest names; others are left over from a rewrite, or Redis's own. */
async function* appendOnlyFiles(home: string, lengths: ReadonlyMap<string, number>): AsyncGenerator<Entry> {
  const folder = "redis/appendonlydir";
  const manifest = await readFile(join(home, folder, MANIFEST), "utf8").catch(() => null);
  if (manifest === null) return;
  for (const path of ["redis", folder]) yield { path, file: join(home, path), bytes: null };
  for (const name of [MANIFEST, ...appendOnlyNames(manifest)]) yield await fileAt(home, `${folder}/${name}`, lengths);
}

/**
 * Returns the files that a manifest names (`file <name> seq <n> type <b|i>`); files of type h are no longer needed.
 */
export function appendOnlyNames(manifest: string): readonly string[] {
  return Array.from(
    manifest.matchAll(/^file (appendonly\.aof\.\d+\.[a-z.]+) seq \d+ type [bi]\b/gm),
    ([, name = ""]) => name,
  );
}

/** Lists a folder's contents, without files that an engine recreates (links, temporary files, its status). */
async function* below(home: string, path: string, lengths: ReadonlyMap<string, number>): AsyncGenerator<Entry> {
  const found = await names(join(home, path));
  if (found.length === 0 && (await lstat(join(home, path)).catch(() => null)) === null) return;
  yield { path, file: join(home, path), bytes: null };
  for (const name of found) {
    const inside = `${path}/${name.name}`;
    if (isLeftOut(inside)) continue;
    if (name.isDirectory()) yield* below(home, inside, lengths);
    else if (name.isFile()) yield await fileAt(home, inside, lengths);
  }
}

/** Whether the engine recreates it, or a crash left it. */
export function isLeftOut(path: string): boolean {
  return (
    LEFT_OUT.has(path) ||
    SHARED_CONTENT.test(path) ||
    path.endsWith(UNFINISHED) ||
    /\/(tmp_|delete_tmp_)[^/]*$/.test(path)
  );
}

/** The name under which jobs share a file: each job's own link is backed up. */
const SHARED_CONTENT = /(?:^|\/)shared\.[0-9a-f]{64}\./;
const LEFT_OUT: ReadonlySet<string> = new Set(
  ["shadow", "tmp", "status", "users.xml", "waybill.xml"].map((name) => `clickhouse/${name}`),
);

async function fileAt(home: string, path: string, lengths: ReadonlyMap<string, number>): Promise<Entry> {
  const file = join(home, path);
  return { path, file, bytes: lengths.get(path) ?? (await lstat(file)).size };
}

async function names(folder: string): Promise<readonly Dirent[]> {
  const found = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}
