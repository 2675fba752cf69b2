import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { availableMemory } from "node:process";
import { isAlive } from "./is-alive.ts";

const SHARED_MEMORY = "/dev/shm";
/** A whole run never has more than 0.9 GB there. */
const FREE_BYTES_MIN = 4 * 1024 ** 3;
/** Others may pass, and not list: servers that run as users of their own have their folders inside. */
const MODE = 0o711;

/**
 * A folder in memory for what the tests of this process and its children write, where there is room for one; else null. On a disk,
 * hundreds of databases that live for seconds cost a run a tenth of its CPU: for each file that is made, ext4 looks through the
 * inodes that were removed just now, and syncs wait. It goes when this process ends; one that was killed leaves it to the next.
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
