import { existsSync, readdirSync, rmdirSync, statSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { systemClock } from "../runtime/system-clock.ts";
import { ProcessTelemetry } from "../runtime/telemetry/process-telemetry.ts";
import { BackupError, extractBackup, type Manifest, verifyBackup } from "../storage/backup/archive.ts";
import { PARTS } from "../storage/backup/parts.ts";
import { onDisk, treeOnDisk } from "../storage/on-disk.ts";
import { NAMES, shownBytes } from "./backup.ts";
import { UsageError } from "./command-line.ts";
import { openRestoredFolder } from "./restored-folder.ts";

export interface RestoreOptions {
  /** A backup, or a folder of backups, of which the newest is taken. */
  readonly source: string;
  /** The data folder, which must not exist or be empty. */
  readonly home: string;
  /** The fate of the queued jobs: `send` or `fail`. */
  readonly queued: string | undefined;
}

const EXIT_DECIDE = 1;

/**
 * `waybill restore FILE-OR-FOLDER`: recreates the data folder from a backup. Everything is checked, written beside the data
 * folder and opened before the folder gets its name, so a restore that fails or is killed never leaves an incomplete data
 * folder.
 */
export async function restore({ source, home, queued }: RestoreOptions): Promise<number> {
  if (queued !== undefined && queued !== "send" && queued !== "fail") {
    throw new UsageError("--queued takes send or fail");
  }
  requireEmpty(home);
  const file = fileAt(source);
  const manifest = await verifyBackup(file);
  describe(file, manifest);
  const nowMs = systemClock.nowMs();
  if (nowMs < manifest.cutMs) {
    throw new UsageError(
      `this machine's clock says ${new Date(nowMs).toISOString()}, which is before the backup: set the clock first`,
    );
  }
  await removeUnfinished(home);
  const unfinished = `${home}.${crypto.randomUUID().slice(0, 8)}${UNFINISHED}`;
  await mkdir(dirname(home), { recursive: true, mode: 0o700 });
  try {
    await extractBackup(file, unfinished);
    const folder = await openRestoredFolder(unfinished, new ProcessTelemetry({ level: "warn", isTerminal: false }));
    try {
      const { tenants, events, queuedJobs } = folder;
      console.log(`Everything opens: ${tenants} tenants, ${events} events, ${queuedJobs} queued jobs.`);
      if (queuedJobs > 0 && queued === undefined) {
        console.log(whatToDecide(queuedJobs, manifest));
        return EXIT_DECIDE;
      }
      await folder.prepare(manifest.cutMs, queued ?? "send");
      if (queuedJobs > 0) console.log(queued === "fail" ? WILL_FAIL : WILL_SEND);
    } finally {
      await folder.close();
    }
    // PostgreSQL has changed its files since, and syncs them at checkpoints alone.
    const registry = join(unfinished, "postgres");
    if (existsSync(registry)) await treeOnDisk(registry);
    if (existsSync(home)) rmdirSync(home);
    await rename(unfinished, home);
    await onDisk(dirname(home));
    console.log(`${home} is restored. Start Waybill with it.`);
    if (!existsSync(join(home, "master-key"))) console.log(NO_MASTER_KEY);
    return 0;
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

const UNFINISHED = ".restoring";
const WILL_SEND = "The queued jobs are sent after the start.";
const WILL_FAIL =
  "After the start the queued jobs end as failed and what they cost is given back, except those scheduled for later, which are sent.";
const NO_MASTER_KEY = "The backup holds no master key, because MASTER_KEY was set: set it to the same value.";

function whatToDecide(jobs: number, { takenAt }: Manifest): string {
  return [
    "",
    `${jobs} jobs were queued when the backup was taken (${takenAt}). Those that were sent after it would be sent again.`,
    "Nothing was restored. Decide, and run it again with one of",
    "  --queued=send   send them all: none is missing, and some recipients may get a message twice",
    "  --queued=fail   send only what is scheduled for later: the others end as failed, their tenants see why, and wallet\n" +
      "                  tokens are given back",
  ].join("\n");
}

function describe(file: string, { version, takenAt, wasRunning, parts }: Manifest): void {
  console.log(
    `${file} is whole: taken at ${takenAt} with Waybill ${version}${wasRunning ? ", from a running server" : ""}.`,
  );
  for (const part of PARTS) {
    const { files, bytes } = parts[part];
    console.log(`  ${NAMES[part].padEnd(24)} ${String(files).padStart(7)} files ${shownBytes(bytes).padStart(12)}`);
  }
}

function requireEmpty(home: string): void {
  if (!existsSync(home) || readdirSync(home).length === 0) return;
  throw new UsageError(
    `${home} is not empty: stop its server, move the folder away, and run this again; nothing was written`,
  );
}

function fileAt(source: string): string {
  const path = resolve(source);
  if (!existsSync(path)) throw new BackupError(`there is no backup at ${path}`);
  if (!statSync(path).isDirectory()) return path;
  const newest = readdirSync(path)
    .filter((name) => /^waybill-.*\.tar\.zst$/.test(name))
    .sort()
    .at(-1);
  if (newest === undefined) throw new BackupError(`there is no backup in ${path}`);
  return join(path, newest);
}

/** Removes the remains that a killed restore left beside the folder. */
async function removeUnfinished(home: string): Promise<void> {
  const folder = dirname(home);
  const prefix = `${home.slice(folder.length).replace(/^\//, "")}.`;
  for (const name of await readdir(folder).catch(() => [])) {
    if (name.startsWith(prefix) && name.endsWith(UNFINISHED)) {
      await rm(join(folder, name), { recursive: true, force: true });
    }
  }
}
