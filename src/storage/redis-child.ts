import { randomBytes } from "node:crypto";
import { chmod, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, sleep } from "../domain/clock.ts";
import { ConfigurationError } from "../domain/errors.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import { openingStore } from "./opening-store.ts";
import { parentDeathSignal } from "./parent-death-signal.ts";
import { type RedisListener, RedisProcess, redisConfig } from "./redis-process.ts";
import { endOrphans, removeLeftovers } from "./redis-recovery.ts";
import { cutTornTail } from "./torn-tail.ts";
import { beginFolder } from "./unfinished-folder.ts";

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
  /** Of the current process. */
  readonly pid: number;
  /** Ends the child and waits for its exit. Safe to call twice. */
  stop(): Promise<void>;
}

/** A unix socket's path may have 108 bytes on Linux, 104 elsewhere; a few are left for the suffix. */
const SOCKET_PATH_BYTES_MAX = 100;
/** What Redis writes before each message: process, role, time and level. */
const LOG_PREFIX = /^\d+:[A-Z] \d+ \w+ \d+ [\d:.]+ [.*#-] /;
const RESTARTS_MAX = 5;
const RESTART_BASE_MS = 100;
/** A child that has run this long is considered stable: its next exit counts as the first. */
const STABLE_MS = 10_000;

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
    const child = await prepared({ ...options, folder: await realpath(folder) }, server);
    try {
      await child.start();
    } catch (error) {
      lastWord = child.lastWord();
      throw error;
    }
    await isWhole();
    return child;
  });
}

async function prepared(options: RedisChildOptions, server: string): Promise<SupervisedRedis> {
  const { folder } = options;
  const listener = listenerIn(folder);
  const configFile = join(folder, "redis.conf");
  await writeFile(configFile, redisConfig(folder, listener), { mode: 0o600 });
  const command = [...(await parentDeathSignal()), server, configFile];
  return new SupervisedRedis(options, listener, command);
}

/**
 * Invariants:
 * R1. At most one redis-server uses the folder: each start first ends any left by an earlier one.
 * R2. The child does not outlive us: where the kernel can, it kills the child with the thread that started it; where it cannot,
 *     R1 does so at the next start.
 * R3. Nothing in the folder is repaired except the tail that a crash tore, which is kept elsewhere.
 * R4. After `stop`, nothing is started any more.
 */
class SupervisedRedis implements RedisChild {
  private readonly stopping = new AbortController();
  private process: RedisProcess | null = null;
  private watching: Promise<void> | null = null;

  constructor(
    private readonly options: RedisChildOptions,
    private readonly listener: RedisListener,
    private readonly command: readonly string[],
  ) {}

  get pid(): number {
    return this.process?.pid ?? 0;
  }

  get address(): RedisChild["address"] {
    const { listener } = this;
    return listener.kind === "socket"
      ? listener
      : { kind: "url", url: `redis://:${listener.password}@127.0.0.1:${listener.port}` };
  }

  async start(): Promise<void> {
    this.watching = this.watch(await this.run());
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.process?.stop();
    await this.watching;
  }

  /** The line that its latest process ended with: why it does not start. Null: there was none. */
  lastWord(): string | null {
    return this.process?.lastWords().split("\n").at(-1)?.replace(LOG_PREFIX, "") ?? null;
  }

  /** Restarts the child whenever it exits. Ends on `stopping`, or when restarts keep failing. */
  private async watch(first: RedisProcess): Promise<void> {
    const { clock, telemetry, onExit } = this.options;
    let failures = 0;
    let current: RedisProcess | null = first;
    while (!this.stopping.signal.aborted) {
      const startedMs = clock.monotonicMs();
      await current?.exited;
      if (this.stopping.signal.aborted) return;
      failures = current !== null && clock.monotonicMs() - startedMs >= STABLE_MS ? 1 : failures + 1;
      const lastWords = this.process?.lastWords() ?? "";
      telemetry.count("redis_child_exits");
      telemetry.log("error", "redis-server ended and is started again", { failures, lastWords });
      if (failures > RESTARTS_MAX) {
        onExit?.(`redis-server could not be kept running in ${this.options.folder}. It said:\n${lastWords}`);
        return;
      }
      await sleep(clock, RESTART_BASE_MS * 2 ** (failures - 1), this.stopping.signal);
      current = await this.run().catch((error: unknown) => {
        if (this.stopping.signal.aborted) return null;
        telemetry.log("error", "redis-server does not start", { error: String(error) });
        return null;
      });
    }
  }

  /** Makes the permitted repairs, then starts a process and waits until it answers. */
  private async run(): Promise<RedisProcess> {
    const { folder, clock, telemetry } = this.options;
    const orphans = await endOrphans(folder, this.listener.kind === "socket" ? this.listener.path : null, clock);
    if (orphans > 0) telemetry.log("warn", "ended a redis-server that an earlier run left behind", { folder });
    await removeLeftovers(folder, clock);
    const process = await this.spawn();
    if (process !== null) return process;
    const cut = this.stopping.signal.aborted ? null : await cutTornTail(folder);
    if (cut === null) throw new Error("redis-server does not start");
    telemetry.count("redis_tails_cut");
    telemetry.log("warn", "cut off what a crash left of the last write to the queue's file", { ...cut });
    const repaired = await this.spawn();
    if (repaired === null) throw new Error("redis-server does not start");
    return repaired;
  }

  private async spawn(): Promise<RedisProcess | null> {
    if (this.stopping.signal.aborted) return null;
    const { folder, clock, telemetry } = this.options;
    const { command, listener } = this;
    const process = new RedisProcess({ command, folder, listener, clock, telemetry });
    this.process = process;
    return (await process.ready()) ? process : null;
  }
}

function listenerIn(folder: string): RedisListener {
  const path = join(folder, "redis.sock");
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return { kind: "socket", path };
  return { kind: "loopback", port: freePort(), password: randomBytes(24).toString("hex") };
}

function freePort(): number {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  server.stop(true);
  return server.port;
}

function redisServer(): string {
  const path = Bun.which("redis-server");
  if (path !== null) return path;
  throw new ConfigurationError(
    "redis-server 7 or later is not in PATH; install it (Debian and Ubuntu: apt-get install redis-server) or set REDIS_URL",
  );
}
