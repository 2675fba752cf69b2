import { Database } from "bun:sqlite";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigurationError } from "../domain/errors.ts";
import { hasCode } from "../domain/has-code.ts";
import { saidBy } from "../domain/tenants/said-by.ts";

/** Another process holds the folder's lock. The message names it and the remedy. */
export class FolderInUseError extends Error {
  override readonly name = "FolderInUseError";
}

/**
 * Gives one process exclusive use of the data folder. PGlite and redis-server take no lock of their own, and two
 * processes on the same files destroy them.
 *
 * Invariants:
 * F1. The kernel keeps the lock (SQLite's exclusive lock on `<folder>/lock`): it ends with the process, however that
 *     dies, so it can never be stale.
 * F2. `<folder>/lock.pid` only serves the refusal's message; no decision depends on it.
 */
export class FolderLock {
  private constructor(private readonly database: Database) {}

  /**
   * Creates the folder (mode 0700) if missing and locks it, or throws `FolderInUseError` at once; `ConfigurationError` if it
   * cannot be a data folder.
   */
  static acquire(folder: string): FolderLock {
    const database = openIn(folder);
    try {
      database.run("PRAGMA locking_mode = EXCLUSIVE");
      // The transaction stays open as long as the lock is held.
      database.run("BEGIN EXCLUSIVE");
    } catch (error) {
      database.close();
      throw refusal(folder, error);
    }
    notePid(folder);
    return new FolderLock(database);
  }

  /** The same; null if another process holds the folder's lock. */
  static tryAcquire(folder: string): FolderLock | null {
    try {
      return FolderLock.acquire(folder);
    } catch (error) {
      if (error instanceof FolderInUseError) return null;
      throw error;
    }
  }

  /** Releases the lock. Safe to call twice. */
  release(): void {
    this.database.close();
  }
}

function openIn(folder: string): Database {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return new Database(join(folder, "lock"), { create: true });
  } catch (error) {
    throw new ConfigurationError(
      `WAYBILL_HOME is "${folder}"; it should be a folder in which the file "lock" can be written and read (${saidBy(error)})`,
    );
  }
}

function refusal(folder: string, error: unknown): Error {
  if (hasCode(error, "SQLITE_BUSY")) {
    const message = `${folder} is in use by ${describeHolder(folder)}; stop it or set WAYBILL_HOME to another folder`;
    return new FolderInUseError(message, { cause: error });
  }
  // Must not be removed by us: a process with a lock on this very file would not detect that it was replaced.
  return new ConfigurationError(
    `${join(folder, "lock")} cannot be locked (${saidBy(error)}); it should be an empty file: stop every Waybill that uses ` +
      "the folder, remove that file, and it is made anew",
  );
}

/** A full disk may leave it empty. */
function notePid(folder: string): void {
  try {
    writeFileSync(join(folder, "lock.pid"), `${process.pid}\n`, { mode: 0o600 });
  } catch {
    // F2.
  }
}

function describeHolder(folder: string): string {
  try {
    const pid = Number.parseInt(readFileSync(join(folder, "lock.pid"), "utf8"), 10);
    return Number.isNaN(pid) ? "another process" : `process ${pid}`;
  } catch {
    // The holder has the lock but has not written its process id yet.
    return "another process";
  }
}
