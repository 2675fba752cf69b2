import {
  accessSync,
  closeSync,
  constants,
  type Dirent,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
} from "node:fs";
import { join } from "node:path";
import { ConfigurationError } from "../domain/errors.ts";

/** What a mode lets others than the owner do. */
const OF_OTHERS = 0o077;
/** On folders that are made to be shared, as /tmp is. */
const STICKY = 0o1000;
/** The folders that we make in a data folder, and the one that a file system makes. */
const KNOWN_FOLDERS: ReadonlySet<string> = new Set(
  "redis postgres postgres.new clickhouse clickhouse-access export payloads lost+found".split(" "),
);

/**
 * Takes from everybody but the owner whatever right there is to the data folder and to what is in it. Answers whether
 * there was any. A folder that does not exist yet will be private, as our umask is.
 *
 * Former releases left the folder as they found it, with files in it that everybody could write; a copy of one may be as
 * open. A start looks at the first level alone: that is closed after what is below it, so that a walk which was cut off
 * is begun again.
 *
 * @throws ConfigurationError where the folder is not ours to close.
 */
export function makePrivate(home: string): boolean {
  const folder = found(() => realpathSync(home));
  // What is no folder is refused by whoever needs one.
  if (folder === null || !lstatSync(folder).isDirectory()) return false;
  const isOpen = isOpenToOthers(folder);
  if (!isOpen && !isReadable(folder)) return false;
  const entries = readdirSync(folder, { withFileTypes: true });
  if (isOpen) requireOurs(folder, entries);
  // The door before what is behind it.
  if (isOpen) close(folder);
  const inside = entries.filter(hasMode).map(({ name }) => join(folder, name));
  if (!isOpen && !inside.some(isOpenToOthers)) return false;
  for (const entry of entries) if (entry.isDirectory()) closeBelow(join(folder, entry.name));
  for (const path of inside) close(path);
  return true;
}

/** A folder that is shared on purpose, or holds what is somebody else's, must not be taken away from them. */
function requireOurs(folder: string, entries: readonly Dirent[]): void {
  const foreign = entries.find((entry) => entry.isDirectory() && !KNOWN_FOLDERS.has(entry.name));
  if ((lstatSync(folder).mode & STICKY) !== 0) throw refusal(folder, "is shared with other users");
  if (foreign !== undefined) throw refusal(folder, `holds the folder "${foreign.name}", which is not Waybill's`);
}

/** Closes what is in a folder, the innermost first. */
function closeBelow(folder: string): void {
  const entries = found(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) closeBelow(path);
    if (hasMode(entry)) close(path);
  }
}

/** By a descriptor, which is of this very file: nobody can put a link to another one in its place meanwhile. */
function close(path: string): void {
  if (!isOpenToOthers(path)) return;
  const descriptor = orRefused(path, () => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW));
  if (descriptor === null) return;
  try {
    const { mode } = fstatSync(descriptor);
    orRefused(path, () => fchmodSync(descriptor, mode & 0o7777 & ~OF_OTHERS));
    // Some file systems say yes and keep the mode.
    if ((fstatSync(descriptor).mode & OF_OTHERS) !== 0) throw refusal(path, "is on a file system without modes");
  } finally {
    closeSync(descriptor);
  }
}

/** False: it is another user's, and closed to us. A process that needs nothing in it works all the same. */
function isReadable(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    return true;
  } catch (error) {
    if (codeOf(error) === "EACCES") return false;
    throw error;
  }
}

function isOpenToOthers(path: string): boolean {
  const info = lstatSync(path, { throwIfNoEntry: false });
  return info !== undefined && (info.mode & OF_OTHERS) !== 0;
}

/** A link has no mode of its own, and a socket or pipe is made anew by whoever listens there. */
function hasMode(entry: Dirent): boolean {
  return entry.isDirectory() || entry.isFile();
}

/** Null: it is gone, as files of a server at work may be. */
function found<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

function orRefused<T>(path: string, act: () => T): T | null {
  try {
    return found(act);
  } catch (error) {
    const code = codeOf(error);
    if (code === null) throw error;
    throw refusal(
      path,
      code === "EPERM" || code === "EACCES" ? "belongs to another user" : `cannot be closed (${code})`,
    );
  }
}

function refusal(path: string, why: string): ConfigurationError {
  const mode = (lstatSync(path).mode & 0o7777).toString(8).padStart(4, "0");
  return new ConfigurationError(
    `WAYBILL_HOME should be a folder that nobody else can read: ${path} has mode ${mode} and ${why}; give Waybill a ` +
      "folder of its own, or take the others' rights away (chmod -R go-rwx)",
  );
}

function codeOf(error: unknown): string | null {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
}
