import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { availableMemory } from "node:process";
import { isAlive } from "./is-alive.ts";

const SHARED_MEMORY = "/dev/shm";
/** A whole run never has more than 0.9 GB there. */
const FREE_BYTES_MIN = 4 * 1024 ** 3;
/** Others may pass through, but not list: servers that run as users of their own have their folders inside. */
const MODE = 0o711;

/**
 * A folder in memory for files of this process's tests and its children, if there is space for one; else null. On a
 * disk, hundreds of short-lived databases cost a run a tenth of its CPU: for each new file, ext4 searches the inodes
 * that were just removed, and syncs wait. It is removed when this process ends; a killed process leaves it to the next.
 */
export function memoryFolder(): string | null {
  if (!hasRoom()) return null;
  const prefix = `waybill-tests-${userInfo().uid}-`;
  for (const name of readdirSync(SHARED_MEMORY)) {
    if (name.startsWith(prefix) && !isAlive(Number(name.slice(prefix.length)))) remove(join(SHARED_MEMORY, name));
  }
  const folder = join(SHARED_MEMORY, `${prefix}${process.pid}`);
  mkdirSync(folder);
  chmodSync(folder, MODE);
  process.on("exit", () => remove(folder));
  return folder;
}

function hasRoom(): boolean {
  if (!existsSync("/proc/mounts")) return false;
  const mount = readFileSync("/proc/mounts", "utf8").match(/^\S+ \/dev\/shm tmpfs (\S+)/m);
  // The tests also write programs, and run them.
  if (mount === null || mount[1]?.split(",").includes("noexec") !== false) return false;
  const { bavail, bsize } = statfsSync(SHARED_MEMORY);
  return Math.min(bavail * bsize, availableMemory() / 2) >= FREE_BYTES_MIN;
}

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}
