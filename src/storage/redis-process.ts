import { totalmem } from "node:os";
import { Redis } from "ioredis";
import { type Clock, sleep } from "../domain/clock.ts";
import type { Telemetry } from "../domain/telemetry.ts";

export interface RedisProcessOptions {
  /** The command line: redis-server with its configuration, and any prefix. */
  readonly command: readonly string[];
  readonly folder: string;
  readonly listener: RedisListener;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

const LAST_LINES = 20;
/** Loading a large file takes minutes; a server silent for this long is considered hung. */
const READY_WAIT_MS = 10 * 60_000;
const STOP_WAIT_MS = 8_000;
/** A helper forked by Redis can keep the log open after Redis exits; then the lines read so far must do. */
const LOG_WAIT_MS = 200;

/** One run of a redis-server, from start to exit. */
export class RedisProcess {
  /** Resolves once the process has exited and its last lines are read. Never rejects. */
  readonly exited: Promise<void>;
  private readonly child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  private readonly lines: string[] = [];

  /** Starts the process; `ready` says when it answers. Call it on the main thread (see `redis-child.ts`). */
  constructor(private readonly options: RedisProcessOptions) {
    this.child = Bun.spawn([...options.command], {
      cwd: options.folder,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      // It must not inherit our secrets.
      env: {},
      // Its own session: Ctrl-C on the terminal is for us, and Redis must outlive our drain.
      detached: true,
    });
    const endWithParent = () => this.child.kill("SIGKILL");
    process.on("exit", endWithParent);
    const log = Promise.all([this.read(this.child.stdout), this.read(this.child.stderr)]);
    this.exited = this.child.exited.then(async () => {
      process.off("exit", endWithParent);
      await Promise.race([log, sleep(options.clock, LOG_WAIT_MS)]);
    });
  }

  get pid(): number {
    return this.child.pid;
  }

  /** Whether the server answered with its data loaded; false if it exited first, or was killed because it did not answer. */
  async ready(): Promise<boolean> {
    const { listener, clock } = this.options;
    const redis = new Redis({
      ...clientOptions(listener),
      retryStrategy: () => 25,
      // How often to check while it loads.
      maxLoadingRetryTime: 100,
    });
    // Connections are refused until it listens.
    redis.on("error", () => undefined);
    const over = new AbortController();
    try {
      const answered = new Promise<"ready">((resolve) => redis.once("ready", () => resolve("ready")));
      const ended = this.exited.then(() => "ended" as const);
      const late = sleep(clock, READY_WAIT_MS, over.signal).then(() => "late" as const);
      const first = await Promise.race([answered, ended, late]);
      if (first === "late") {
        this.remember(`gave no answer for ${READY_WAIT_MS / 1000} seconds`);
        await this.stop();
      }
      return first === "ready";
    } finally {
      over.abort();
      redis.disconnect();
    }
  }

  /** Its latest log lines, oldest first. */
  lastWords(): string {
    return this.lines.join("\n");
  }

  /** Ends it, gracefully if it obeys. Safe to call twice. */
  async stop(): Promise<void> {
    const over = new AbortController();
    this.child.kill("SIGTERM");
    const late = sleep(this.options.clock, STOP_WAIT_MS, over.signal).then(() => {
      if (!over.signal.aborted) this.child.kill("SIGKILL");
    });
    await this.exited;
    over.abort();
    await late;
  }

  private async read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of stream) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.remember(line.trim());
    }
  }

  private remember(line: string): void {
    if (line === "") return;
    this.lines.push(line);
    if (this.lines.length > LAST_LINES) this.lines.shift();
    this.options.telemetry.log("debug", "redis-server says", { line });
  }
}

function clientOptions(listener: RedisListener) {
  switch (listener.kind) {
    case "socket":
      return { path: listener.path };
    case "loopback":
      return { host: "127.0.0.1", port: listener.port, password: listener.password };
  }
}

/** Where a private redis-server listens. */
export type RedisListener =
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "loopback"; readonly port: number; readonly password: string };

/**
 * The configuration of the private redis-server as the text of a redis.conf (Redis 7.0). Each difference from Redis's defaults
 * is explained; https://redis.io/docs/latest/operate/oss_and_stack/management/config/.
 */
export function redisConfig(folder: string, listener: RedisListener): string {
  return [
    ...listenerLines(listener),
    `dir ${quoted(folder)}`,
    "daemonize no",
    // The log goes to standard output, which the parent reads.
    'logfile ""',
    // It would quote the commands in progress, and messages are in them.
    "crash-log-enabled no",

    // Redis replies only after the write is on disk, even while it rewrites the file: a 202 promises that.
    "appendonly yes",
    "appendfsync always",
    "no-appendfsync-on-rewrite no",
    // What a crash tore is cut off by us, because Redis leaves a part of it (`torn-tail.ts`). Other damage stops the start.
    "aof-load-truncated no",
    'save ""',

    // A full Redis refuses new jobs; it never evicts old ones, and does not exhaust the machine's memory.
    `maxmemory ${Math.floor(totalmem() / 2)}`,
    "maxmemory-policy noeviction",
    // One slip on a console must not empty the queue.
    'rename-command FLUSHALL ""',
    'rename-command FLUSHDB ""',
    'rename-command DEBUG ""',

    // Jobs and their events are small hashes, which take far less memory when packed.
    "hash-max-listpack-entries 256",
    "hash-max-listpack-value 256",
    "stream-node-max-bytes 4096",
    "stream-node-max-entries 100",
    "",
  ].join("\n");
}

function listenerLines(listener: RedisListener): readonly string[] {
  switch (listener.kind) {
    case "socket":
      return ["port 0", `unixsocket ${quoted(listener.path)}`, "unixsocketperm 700"];
    case "loopback":
      return [
        "bind 127.0.0.1",
        `port ${listener.port}`,
        "protected-mode yes",
        `requirepass ${quoted(listener.password)}`,
      ];
  }
}

/** A redis.conf string: in double quotes, with every byte that could end it or the line escaped. */
function quoted(text: string): string {
  const escaped = Array.from(Buffer.from(text), (byte) =>
    byte < 0x20 || byte > 0x7e || byte === 0x22 || byte === 0x5c
      ? `\\x${byte.toString(16).padStart(2, "0")}`
      : String.fromCharCode(byte),
  );
  return `"${escaped.join("")}"`;
}
