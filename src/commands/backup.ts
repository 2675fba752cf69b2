import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Config } from "../config/config.ts";
import { ConfigurationError } from "../domain/errors.ts";
import { saidBy } from "../domain/tenants/said-by.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { type BackupFacts, type Manifest, type PartSums, writeBackup } from "../storage/backup/archive.ts";
import { noteBackup } from "../storage/backup/last-backup.ts";
import { type Entry, listEntries, type Part } from "../storage/backup/parts.ts";
import { removeStaging } from "../storage/backup/running-cut.ts";
import { FolderLock } from "../storage/folder-lock.ts";
import { endOrphans } from "../storage/redis/redis-recovery.ts";
import { NOT_EMBEDDED, type PreparedCut } from "../tasks/backup-task.ts";
import { runningStart } from "../tasks/control-socket.ts";
import { UsageError } from "./command-line.ts";

export interface BackupOptions {
  readonly home: string;
  /** A file, or a folder, in which a file named after the time is made. */
  readonly target: string;
  readonly version: string;
}

/**
 * `waybill backup FILE-OR-FOLDER`: writes a snapshot of the data folder to one file, also while a server runs. The server
 * prepares a copy inside its data folder; this process reads the copy and writes the file, with the caller's rights.
 */
export async function backup(open: () => Config, { home, target, version }: BackupOptions): Promise<number> {
  // Checked before the configuration is read, which would create secrets in an empty folder.
  if (!existsSync(join(home, "postgres"))) throw new UsageError(`there is no data folder at ${home}: see WAYBILL_HOME`);
  const config = open();
  if (config.redis !== null || config.databaseUrl !== null || config.clickhouseUrl !== null) {
    throw new ConfigurationError(NOT_EMBEDDED);
  }
  const file = fileFor(target);
  const facts = { version, takenAt: new Date(systemClock.nowMs()).toISOString() };
  const lock = FolderLock.tryAcquire(config.home);
  try {
    const manifest = lock === null ? await ofRunning(config, file, facts) : await ofStopped(config, file, facts);
    console.log(`${file} is complete and shows ${new Date(manifest.cutMs).toISOString()}.`);
    await noteBackup(config.home, manifest.cutMs).catch((error: unknown) => {
      console.error(`The server's metric of the last backup does not know of it: ${saidBy(error)}`);
    });
    console.log("It holds the keys of this installation: whoever can read it can read everything.");
    return 0;
  } finally {
    lock?.release();
  }
}

type Begun = Pick<BackupFacts, "version" | "takenAt">;

async function ofStopped({ home }: Config, file: string, begun: Begun): Promise<Manifest> {
  console.log(`No server runs on ${home}: its files are copied as they are.`);
  await endOrphans(join(home, "redis"), null, systemClock);
  await removeStaging(home);
  return write(file, listEntries(home), { ...begun, cutMs: systemClock.nowMs(), wasRunning: false });
}

async function ofRunning({ home }: Config, file: string, begun: Begun): Promise<Manifest> {
  const done = new AbortController();
  const written = Promise.withResolvers<Manifest>();
  const asking = runningStart(home).ask(
    "backup",
    null,
    (said) => {
      // The answer comes from our own server.
      const { folder, cutMs, heldMs, lengths } = said as unknown as PreparedCut;
      console.log(`The server held its stores for ${Math.round(heldMs)} ms and goes on.`);
      const facts = { ...begun, cutMs, wasRunning: true };
      // The server then removes its copy.
      const onWritten = () => done.abort();
      write(file, listEntries(folder, new Map(lengths)), facts, onWritten).then(written.resolve, written.reject);
    },
    done.signal,
  );
  // The answer ends before the file is written only if the server has ended.
  const answered = asking.catch((error: unknown) => {
    if (!done.signal.aborted) throw error;
  });
  try {
    return await Promise.race([written.promise, answered.then(() => written.promise)]);
  } finally {
    done.abort();
    answered.catch(() => undefined);
    written.promise.catch(() => undefined);
  }
}

function write(
  file: string,
  entries: AsyncIterable<Entry>,
  facts: BackupFacts,
  onWritten = () => {},
): Promise<Manifest> {
  const onPart = (part: Part, { files, bytes }: PartSums) => {
    console.log(`  ${NAMES[part].padEnd(24)} ${String(files).padStart(7)} files ${shownBytes(bytes).padStart(12)}`);
  };
  return writeBackup(file, entries, facts, { onPart, onWritten });
}

export const NAMES: Readonly<Record<Part, string>> = {
  secrets: "secrets",
  queue: "queue (Redis)",
  registry: "registry (PostgreSQL)",
  events: "events (ClickHouse)",
  payloads: "large payloads",
};

export function shownBytes(bytes: number): string {
  return bytes < 1e6
    ? `${(bytes / 1e3).toFixed(1)} KB`
    : bytes < 1e9
      ? `${(bytes / 1e6).toFixed(1)} MB`
      : `${(bytes / 1e9).toFixed(2)} GB`;
}

function fileFor(target: string): string {
  const path = resolve(target);
  const isFolder = target.endsWith("/") || (existsSync(path) && statSync(path).isDirectory());
  if (!isFolder) return path;
  const name = new Date(systemClock.nowMs())
    .toISOString()
    .replace(/\.\d+Z$/, "Z")
    .replaceAll(":", "");
  return join(path, `waybill-${name}.tar.zst`);
}
