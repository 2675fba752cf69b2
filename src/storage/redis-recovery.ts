import { existsSync } from "node:fs";
import { constants, copyFile, open, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type Clock, sleep } from "../domain/clock.ts";

const GONE_POLL_MS = 10;
const GONE_WAIT_MS = 10_000;

/**
 * Ends every redis-server still using `folder` (an absolute path without symbolic links): a child of a process that died, or
 * the helper it forked to rewrite its file. Two of them on one append-only file destroy it, and Redis takes no lock. Returns
 * how many there were; rejects if one does not exit.
 *
 * The caller holds the lock of the data folder, so any server running there is an orphan.
 */
export async function endOrphans(folder: string, socketPath: string | null, clock: Clock): Promise<number> {
  const pids = await redisProcessesIn(folder);
  // SIGKILL also reaches a stopped process, and every acknowledged write is on disk already.
  for (const pid of pids) kill(pid);
  await until(async () => (await redisProcessesIn(folder)).length === 0, clock, `processes ${pids.join(", ")}`);
  const answered = socketPath !== null && (await shutDownBySocket(socketPath, clock));
  return pids.length + (answered ? 1 : 0);
}

/**
 * Finds redis processes whose working directory is the folder, through Linux's /proc. Elsewhere finds none; the socket must do.
 */
async function redisProcessesIn(folder: string): Promise<readonly number[]> {
  const entries = await readdir("/proc").catch(() => []);
  const pids = entries.filter((entry) => /^\d+$/.test(entry));
  const found = await Promise.all(pids.map(async (pid) => ((await isRedisIn(pid, folder)) ? [Number(pid)] : [])));
  return found.flat();
}

async function isRedisIn(pid: string, folder: string): Promise<boolean> {
  // Unreadable: another user's process, or one that has just ended.
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => null);
  if (cwd !== folder) return false;
  const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "");
  return name.startsWith("redis");
}

/** Without /proc, shuts down a server that answers on the folder's socket. Returns whether there was one. */
async function shutDownBySocket(path: string, clock: Clock): Promise<boolean> {
  if (!existsSync(path)) return false;
  const redis = new Redis({ path, lazyConnect: true, retryStrategy: () => null, connectTimeout: 1_000 });
  redis.on("error", () => undefined);
  try {
    await redis.connect();
  } catch {
    // No listener: a socket file left by a killed server, which the next one replaces.
    return false;
  }
  try {
    // It answers by closing the connection.
    const ended = new Promise<void>((resolve) => redis.once("end", resolve));
    redis.shutdown("NOSAVE").catch(() => undefined);
    await Promise.race([ended, sleep(clock, GONE_WAIT_MS)]);
  } finally {
    redis.disconnect();
  }
  await until(async () => !existsSync(path), clock, `the redis-server behind ${path}`);
  return true;
}

async function until(isGone: () => Promise<boolean>, clock: Clock, what: string): Promise<void> {
  const deadlineMs = clock.monotonicMs() + GONE_WAIT_MS;
  while (!(await isGone())) {
    if (clock.monotonicMs() > deadlineMs) throw new Error(`${what} from an earlier run cannot be ended`);
    await sleep(clock, GONE_POLL_MS);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has just ended by itself.
  }
}

interface CutTail {
  readonly file: string;
  readonly bytes: number;
  readonly backup: string;
}

const CHUNK_BYTES = 64 * 1024;

/**
 * Cuts the zero bytes from the end of the append-only file that Redis was writing, after copying the file. Null if there are
 * none.
 *
 * A file system can enlarge a file before it writes the data. After a power loss the tail then reads as zeros, and Redis, which
 * accepts a truncated command, refuses them. A complete command ends in CR LF, so the zeros contain nothing that was
 * acknowledged. Any other damage is left as it is.
 */
export async function cutZeroTail(redisFolder: string, nowMs: number): Promise<CutTail | null> {
  const file = await lastIncrement(join(redisFolder, "appendonlydir"));
  if (file === null) return null;
  const handle = await open(file, "r+");
  try {
    const { size } = await handle.stat();
    const kept = await lengthWithoutZeroTail(handle, size);
    if (kept === size) return null;
    const backup = `${file}.${nowMs}.backup`;
    // A file system that can share blocks makes this copy for free.
    await copyFile(file, backup, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    await handle.truncate(kept);
    await handle.sync();
    return { file, bytes: size - kept, backup };
  } finally {
    await handle.close();
  }
}

/** The last increment that the manifest names (`file <name> seq <n> type i`), or null. */
async function lastIncrement(folder: string): Promise<string | null> {
  const manifest = await readFile(join(folder, "appendonly.aof.manifest"), "utf8").catch(() => "");
  const increments = Array.from(manifest.matchAll(/^file (appendonly\.aof\.\d+\.incr\.aof) seq \d+ type i\b/gm));
  const name = increments.at(-1)?.[1];
  return name === undefined ? null : join(folder, name);
}

async function lengthWithoutZeroTail(handle: Awaited<ReturnType<typeof open>>, size: number): Promise<number> {
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const { bytesRead } = await handle.read(chunk, 0, end - start, start);
    const last = chunk.subarray(0, bytesRead).findLastIndex((byte) => byte !== 0);
    if (last >= 0) return start + last + 1;
    end = start;
  }
  return 0;
}
