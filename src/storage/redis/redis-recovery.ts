import { existsSync } from "node:fs";
import { readdir, readFile, readlink, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type Clock, sleep, waitAtMost } from "../../domain/clock.ts";

const GONE_POLL_MS = 10;
const GONE_WAIT_MS = 10_000;

/**
 * Ends every redis-server still using `folder` (an absolute path without symbolic links): a child of a process that
 * died, or the helper it forked to rewrite its file. Two of them on one append-only file destroy it, and Redis takes no
 * lock. Returns how many there were; rejects if one does not exit.
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
 * Finds redis processes whose working directory is the folder, through Linux's /proc. Elsewhere it finds none, and the
 * socket must suffice.
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
  return /^(redis|valkey)/.test(name);
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
    await waitAtMost(clock, GONE_WAIT_MS, ended);
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

/**
 * Files that a helper of Redis was writing when it was killed. Redis removes them only if it ends the helper itself.
 */
const REWRITE = /^temp-(?:rewriteaof-(?:bg-)?\d+\.aof|\d+\.rdb)$/;
/** Tails that were cut off a file; former releases kept them with everything before them. */
const CUT_OFF = /^(?:torn-tail\.aof|appendonly\.aof\.\d+\.incr\.aof\.\d+\.backup)$/;
const CUT_OFF_KEPT_MS = 7 * 86_400_000;

/**
 * Removes copies of queued messages that a crash has left, and copies of torn files after some days. No redis-server
 * may run there.
 */
export async function removeLeftovers(folder: string, clock: Clock): Promise<void> {
  for (const place of [folder, join(folder, "appendonlydir")]) {
    for (const name of await readdir(place).catch(() => [])) {
      const file = join(place, name);
      const isOld = async () => clock.nowMs() - (await stat(file)).mtimeMs > CUT_OFF_KEPT_MS;
      if (REWRITE.test(name) || (CUT_OFF.test(name) && (await isOld()))) await rm(file, { force: true });
    }
  }
}
