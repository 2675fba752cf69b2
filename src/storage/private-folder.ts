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
import { saidBy } from "../domain/tenants/said-by.ts";

/** The permission bits of group and others. */
const OF_OTHERS = 0o077;
/** Set on folders meant to be shared, such as /tmp. */
const STICKY = 0o1000;
/** Created by file systems, for root, in their mount point. */
const OF_THE_DISK = "lost+found";
/** The folders that we create in a data folder, and `lost+found`. */
const KNOWN_FOLDERS: ReadonlySet<string> = new Set([
  ..."redis postgres postgres.new clickhouse clickhouse-access export payloads backup.unfinished".split(" "),
  OF_THE_DISK,
]);

/** The folders into which child processes write their exports, named after them, such as `api-1`. */
const OF_A_CHILD = /^export-[a-z]+-\d+$/;

/**
 * Removes other users' access to the data folder and its contents. Returns whether there was any. A folder that does
 * not exist yet will be private because of our umask.
 *
 * Former releases left the folder's mode unchanged, with files that every user could write; a copy of one may be just
 * as open. A start checks only the first level: it is closed after everything below it, so an interrupted walk starts
 * over.
 *
 * @throws ConfigurationError if the folder is not ours to close.
 */
export function makePrivate(home: string): boolean {
  const folder = found(() => realpathSync(home));
  // Code that needs a folder refuses anything else itself.
  if (folder === null || !lstatSync(folder).isDirectory()) return false;
  const isOpen = isOpenToOthers(folder);
  if (!isOpen && !isReadable(folder)) return false;
  const entries = readdirSync(folder, { withFileTypes: true });
  if (isOpen) requireOurs(folder, entries);
  // The folder first, then its contents.
  if (isOpen) close(folder);
  const inside = entries.filter(hasMode).map(({ name }) => join(folder, name));
  if (!isOpen && !inside.some(isOpenToOthers)) return false;
  for (const entry of entries) if (entry.isDirectory()) closeBelow(join(folder, entry.name));
  for (const path of inside) close(path);
  return true;
}

/**
 * Refuses a data folder of another user, who knows its secrets and can replace its files, and a link to it that another
 * user can redirect. The parent folders are not checked: a user who can replace the folder itself leaves a folder of
 * their own.
 *
 * @throws ConfigurationError
 */
export function requireOwnFolder(home: string): void {
  const us = process.geteuid?.();
  // Windows has no such owners.
  if (us === undefined) return;
  const link = statFolder(home);
  if (link?.isSymbolicLink() && link.uid !== 0) requireOwner(home, link.uid, us);
  const folder = found(() => realpathSync(home));
  if (folder === null) return;
  const info = lstatSync(folder);
  if (!info.isDirectory()) {
    throw new ConfigurationError(
      `WAYBILL_HOME is "${home}", which is no folder; it should be one, or not be there yet`,
    );
  }
  // No data can be taken from it. Code that needs it refuses it itself.
  if (!isReadable(folder)) return;
  requireOwner(folder, info.uid, us);
  for (const name of readdirSync(folder)) {
    if (name === OF_THE_DISK) continue;
    const entry = lstatSync(join(folder, name), { throwIfNoEntry: false });
    if (entry !== undefined) requireOwner(join(folder, name), entry.uid, us);
  }
}

/** Null: the folder does not exist yet. */
function statFolder(home: string) {
  try {
    return found(() => lstatSync(home));
  } catch (error) {
    throw new ConfigurationError(`WAYBILL_HOME is "${home}", which cannot be a folder (${saidBy(error)})`);
  }
}

function requireOwner(path: string, uid: number, us: number): void {
  if (uid === us) return;
  throw new ConfigurationError(
    `${path} belongs to ${describeUser(uid)}, and Waybill runs as ${describeUser(us)}: run it as that user, give it a folder of its own ` +
      `(WAYBILL_HOME), take the files over (chown -R ${us}), or, on a mount that shows other owners, set WAYBILL_HOME_OWNER=any`,
  );
}

function describeUser(uid: number): string {
  return uid === 0 ? "root" : `the user with uid ${uid}`;
}

/**
 * Requires that the folder is not shared on purpose, and has no other users' files: such a folder must not be closed.
 */
function requireOurs(folder: string, entries: readonly Dirent[]): void {
  const foreign = entries.find((entry) => entry.isDirectory() && !isKnown(entry.name));
  if ((lstatSync(folder).mode & STICKY) !== 0) throw refusal(folder, "is shared with other users");
  if (foreign !== undefined) throw refusal(folder, `holds the folder "${foreign.name}", which is not Waybill's`);
}

function isKnown(folder: string): boolean {
  return KNOWN_FOLDERS.has(folder) || OF_A_CHILD.test(folder);
}

/** Closes everything in a folder, deepest level first. */
function closeBelow(folder: string): void {
  const entries = found(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) closeBelow(path);
    if (hasMode(entry)) close(path);
  }
}

/** Closes by descriptor, which stays with this file: it cannot be replaced by a link to another one meanwhile. */
function close(path: string): void {
  if (!isOpenToOthers(path)) return;
  const descriptor = orRefused(path, () => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW));
  if (descriptor === null) return;
  try {
    const { mode } = fstatSync(descriptor);
    orRefused(path, () => fchmodSync(descriptor, mode & 0o7777 & ~OF_OTHERS));
    // Some file systems report success without changing the mode.
    if ((fstatSync(descriptor).mode & OF_OTHERS) !== 0) throw refusal(path, "is on a file system without modes");
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Whether the folder can be read. False: it belongs to another user and is closed to us. A process that does not need
 * its contents still works.
 */
function isReadable(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    return true;
  } catch (error) {
    if (readCode(error) === "EACCES") return false;
    throw error;
  }
}

function isOpenToOthers(path: string): boolean {
  const info = lstatSync(path, { throwIfNoEntry: false });
  return info !== undefined && (info.mode & OF_OTHERS) !== 0;
}

/**
 * Whether an entry has a mode to change: a link has none of its own, and a socket or pipe is recreated by its listener.
 */
function hasMode(entry: Dirent): boolean {
  return entry.isDirectory() || entry.isFile();
}

/** Null: the file is gone, which can happen while a server is running. */
function found<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (readCode(error) === "ENOENT") return null;
    throw error;
  }
}

function orRefused<T>(path: string, act: () => T): T | null {
  try {
    return found(act);
  } catch (error) {
    const code = readCode(error);
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

function readCode(error: unknown): string | null {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
}
