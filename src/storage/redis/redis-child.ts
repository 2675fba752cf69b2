import { randomBytes } from "node:crypto";
import { chmod, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import type { Clock } from "../../domain/clock.ts";
import { ConfigurationError } from "../../domain/errors.ts";
import type { Telemetry } from "../../domain/telemetry.ts";
import { freePort } from "../free-port.ts";
import { KeptServer } from "../kept-server.ts";
import { openingStore } from "../opening-store.ts";
import { parentDeathSignal } from "../parent-death-signal.ts";
import { hasRoomToWrite } from "../room-on-disk.ts";
import { ServerProcess } from "../server-process.ts";
import { beginFolder } from "../unfinished-folder.ts";
import { type RedisListener, redisConfig } from "./redis-config.ts";
import { endOrphans, removeLeftovers } from "./redis-recovery.ts";
import { cutTornTail } from "./torn-tail.ts";

export interface RedisChildOptions {
  /** The child's own folder, created with mode 0700. The caller holds the lock of the data folder that contains it. */
  readonly folder: string;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
  /** The child failed for good: it could not be restarted. `reason` ends with its last log lines. */
  onExit?(reason: string): void;
}

/** A private redis-server. Its address survives restarts, so clients reconnect by themselves. */
export interface RedisChild {
  readonly address: { readonly kind: "socket"; readonly path: string } | { readonly kind: "url"; readonly url: string };
  /** The process id of the current process. */
  readonly pid: number;
  /** Ends the child and waits for its exit. Safe to call twice. */
  stop(): Promise<void>;
}

/** A unix socket's path may have 108 bytes on Linux, 104 elsewhere; a few are left for the suffix. */
const SOCKET_PATH_BYTES_MAX = 100;
/** Redis' prefix of each log message: process, role, time and level. */
const LOG_PREFIX = /^\d+:[A-Z] \d+ \w+ \d+ [\d:.]+ [.*#-] /;
const RESTARTS_MAX = 5;

/**
 * Starts a private redis-server on `folder` and keeps it running until `stop`. Resolves once it answers with its data loaded;
 * rejects with `UnopenedStoreError` if that fails.
 *
 * Call it on the main thread: Linux kills the child when the thread that started it ends.
 */
export async function startRedisChild(options: RedisChildOptions): Promise<RedisChild> {
  const { folder } = options;
  const server = redisServer();
  let lastWord: string | null = null;
  return await openingStore({ store: "the queue (Redis)", folder, lastWords: () => lastWord }, async () => {
    const isWhole = await beginFolder(folder);
    await chmod(folder, 0o700);
    const place = await realpath(folder);
    const listener = listenerIn(place);
    const configFile = join(place, "redis.conf");
    await writeFile(configFile, redisConfig(place, listener), { mode: 0o600 });
    const command = [...(await parentDeathSignal()), server, configFile];
    const kept = keptRedis({ ...options, folder: place }, listener, command);
    try {
      await kept.start();
    } catch (error) {
      // The last line of its latest process: the reason why it does not start.
      lastWord = kept.lastWords().split("\n").at(-1)?.replace(LOG_PREFIX, "") ?? null;
      throw error;
    }
    await isWhole();
    return {
      address: toAddress(listener),
      get pid() {
        return kept.pid;
      },
      stop: () => kept.stop(),
    };
  });
}

/**
 * Invariants:
 * R1. At most one redis-server uses the folder: each start first ends any left by an earlier one.
 * R2. The child does not outlive us: if the kernel can, it kills the child with the thread that started it; otherwise
 *     R1 does so at the next start.
 * R3. The only repair in the folder is cutting off the tail that a crash tore, which is kept elsewhere.
 */
function keptRedis(
  { folder, clock, telemetry, onExit }: RedisChildOptions,
  listener: RedisListener,
  command: readonly string[],
): KeptServer {
  const name = "redis-server";
  return new KeptServer({
    name,
    exits: "redis_child_exits",
    startsMax: RESTARTS_MAX,
    clock,
    telemetry,
    hasRoom: () => hasRoomToWrite(folder),
    async prepare() {
      const orphans = await endOrphans(folder, listener.kind === "socket" ? listener.path : null, clock);
      if (orphans > 0) telemetry.log("warn", "ended a redis-server that an earlier run left behind", { folder });
      await removeLeftovers(folder, clock);
    },
    make: () =>
      new ServerProcess({
        name,
        command,
        folder,
        endsBy: "signal",
        answers: (signal) => redisAnswers(listener, signal),
        clock,
        telemetry,
      }),
    async repair() {
      const cut = await cutTornTail(folder);
      if (cut === null) return false;
      telemetry.count("redis_tails_cut");
      telemetry.log("warn", "cut off what a crash left of the last write to the queue's file", { ...cut });
      return true;
    },
    onGone: (lastWords) => onExit?.(`redis-server could not be kept running in ${folder}. It said:\n${lastWords}`),
  });
}

/** Resolves once it answers with its data loaded. */
async function redisAnswers(listener: RedisListener, signal: AbortSignal): Promise<void> {
  const redis = new Redis({
    ...clientOptions(listener),
    retryStrategy: () => 25,
    // How often to check while it loads.
    maxLoadingRetryTime: 100,
  });
  // Connections are refused until it listens.
  redis.on("error", () => undefined);
  const over = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  await Promise.race([new Promise<void>((resolve) => redis.once("ready", () => resolve())), over]);
  redis.disconnect();
}

function clientOptions(listener: RedisListener) {
  switch (listener.kind) {
    case "socket":
      return { path: listener.path };
    case "loopback":
      return { host: "127.0.0.1", port: listener.port, password: listener.password };
  }
}

function toAddress(listener: RedisListener): RedisChild["address"] {
  return listener.kind === "socket"
    ? listener
    : { kind: "url", url: `redis://:${listener.password}@127.0.0.1:${listener.port}` };
}

function listenerIn(folder: string): RedisListener {
  const path = join(folder, "redis.sock");
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return { kind: "socket", path };
  return { kind: "loopback", port: freePort(), password: randomBytes(24).toString("hex") };
}

function redisServer(): string {
  const path = Bun.which("redis-server");
  if (path !== null) return path;
  throw new ConfigurationError(
    "redis-server 7 or later is not in PATH; install it (Debian and Ubuntu: apt-get install redis-server) or set REDIS_URL",
  );
}
