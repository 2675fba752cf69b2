import { chown, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { writeWholeFile } from "../whole-file.ts";

/** The file of the data folder with the point in time of its last complete backup, ISO 8601. */
const FILE = "last-backup";

/** Records that a backup is complete. The data folder's owner, who may not be the caller, can read it. */
export async function noteBackup(home: string, cutMs: number): Promise<void> {
  const path = join(home, FILE);
  await writeWholeFile(path, Buffer.from(`${new Date(cutMs).toISOString()}\n`));
  const { uid, gid } = await stat(home);
  if (process.getuid?.() === 0) await chown(path, uid, gid);
}

/** Returns the point in time of the last backup (Unix ms); without a backup, the folder's creation. */
export async function lastBackupMs(home: string): Promise<number> {
  const text = await readFile(join(home, FILE), "utf8").catch(() => "");
  const noted = Date.parse(text.trim());
  return Number.isNaN(noted) ? (await stat(home)).birthtimeMs : noted;
}
